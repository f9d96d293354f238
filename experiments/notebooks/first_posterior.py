# %% [markdown]
# # A first posterior in ten lines
# A simulated two-link arm leaves a log whose noise is autocorrelated, as on a real robot. Its posterior takes seconds.

# %%
import arviz as az
import numpy as np

from bayesid.kinematics import JointMotion
from bayesid.models import Model
from bayesid.posterior import NUTS, Wishart, infer
from bayesid.robots import load_robot
from bayesid.signals import samples_from_log
from bayesid.simulation import Sensors, synthetic_log

model = Model(load_robot("two_link"))
time = np.arange(0, 20, 0.02)
waves = np.array([[0.31, 0.47], [0.83, 0.61]]) * 2 * np.pi
q = sum(0.6 * np.sin(w * time[:, None] + k) for k, w in enumerate(waves))
qd = sum(0.6 * w * np.cos(w * time[:, None] + k) for k, w in enumerate(waves))
qdd = sum(-0.6 * w**2 * np.sin(w * time[:, None] + k) for k, w in enumerate(waves))
truth = Wishart(30.0).of(model).sample(3, 1)[0]
log = synthetic_log(
    model, JointMotion(time, q, qd, qdd), truth, sensors=Sensors(effort_noise=0.5, effort_correlation=0.9), seed=1
)
run = samples_from_log(log, trim=False)
found = infer(model, run, method=NUTS(chains=2, warmup=150, draws=400))

# %% [markdown]
# Did the chains agree? Problems are said in words; there should be none that matter.

# %%
print(found.diagnostics)
print(found.diagnostics.problems)

# %% [markdown]
# Mean, interval, and how much of each parameter came from the data (1: all, 0: nothing).

# %%
table = found.estimate().summary(0.9)
table["contraction"] = found.contraction().round(2)
table["truth"] = truth
print(table.round(3).to_string())

# %% [markdown]
# Every draw is a body that exists, and everything travels as an ArviZ object.

# %%
assert found.min_eigenvalues().min() > 0
data = found.to_arviz()
print(az.summary(data, var_names=["viscous", "coulomb"]))
