# %% [markdown]
# # From a posterior to decisions
# What torque band should a collision detector use, and what should be measured next?

# %%
import matplotlib.pyplot as plt
import numpy as np

from bayesid.models import Model
from bayesid.posterior import Laplace, Wishart, coverage, infer
from bayesid.robots import load_robot
from bayesid.signals import Samples

model = Model(load_robot("two_link"))
truth = Wishart(30.0).of(model).sample(5, 1)[0]


def run(frequencies, seed, amplitude=0.6, seconds=20):
    time = np.arange(0, seconds, 0.02)
    waves = np.array(frequencies) * 2 * np.pi
    q = sum(amplitude * np.sin(w * time[:, None] + k) for k, w in enumerate(waves))
    qd = sum(amplitude * w * np.cos(w * time[:, None] + k) for k, w in enumerate(waves))
    qdd = sum(-amplitude * w**2 * np.sin(w * time[:, None] + k) for k, w in enumerate(waves))
    noise = 0.5 * np.random.default_rng(seed).normal(size=q.shape)
    return Samples(time, q, qd, qdd, model.torque(truth, q, qd, qdd) + noise, "torque")


slow = run([[0.15, 0.2], [0.31, 0.23]], 0)
found = infer(model, slow, likelihood="autoregressive", method=Laplace(2000))
estimate = found.estimate()

# %% [markdown]
# The band of a new motion, and how many measurements it holds.

# %%
new = run([[0.21, 0.33], [0.45, 0.4]], 1)
band = estimate.predict(new, 0.9)
print("90 % band holds", coverage(estimate, new, 0.9)["moving"])

fig, ax = plt.subplots(figsize=(9, 3))
ax.fill_between(new.time, band.lower[:, 1], band.upper[:, 1], alpha=0.3, label="90 % band")
ax.plot(new.time, new.effort[:, 1], lw=0.7, label="measured")
ax.set(xlabel="time [s]", ylabel="torque of joint 2 [N m]")
ax.legend()

# %% [markdown]
# What to measure next: the motion along which predictions are least certain tells most.

# %%
options = {"slow again": run([[0.15, 0.2], [0.31, 0.23]], 2), "fast": run([[0.6, 0.9], [1.1, 0.7]], 3)}
noise = estimate.predictor.quantiles.std(axis=1)
for name, option in options.items():
    spread = np.sqrt(np.maximum(estimate.predict(option).std ** 2 - noise**2, 0.0))
    print(f"{name}: predicted torque is uncertain by {spread.mean(axis=0).round(3)} N m")
both = infer(model, (slow, options["fast"]), likelihood="autoregressive", method=Laplace(2000))
gain = 1.0 - both.base_estimate().std / found.base_estimate().std
print("a fast run shrinks the standard deviation of base parameters by", np.round(100 * gain.mean()), "%")
assert gain.mean() > 0.1
