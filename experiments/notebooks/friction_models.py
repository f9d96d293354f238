# %% [markdown]
# # Which friction law?
# The arm below has a Stribeck bump. Laws are compared by how well they predict blocks of the log that they have not seen. The
# speed at which Stribeck friction breaks away is fitted for each joint.

# %%
import matplotlib.pyplot as plt
import numpy as np

from bayesid.dynamics.friction import stribeck_law
from bayesid.models import Model
from bayesid.posterior import Wishart, candidates, compare_friction
from bayesid.regression import Observations, breakaway_profile
from bayesid.robots import load_robot
from bayesid.signals import Samples

robot = load_robot("two_link")
true_model = Model(robot, stribeck_law(0.1))
time = np.arange(0, 40, 0.02)
waves = np.array([[0.11, 0.17], [0.37, 0.29]]) * 2 * np.pi
q = sum(0.5 * np.sin(w * time[:, None] + k) for k, w in enumerate(waves))
qd = sum(0.5 * w * np.cos(w * time[:, None] + k) for k, w in enumerate(waves))
qdd = sum(-0.5 * w**2 * np.sin(w * time[:, None] + k) for k, w in enumerate(waves))
truth = Wishart(60.0).of(true_model).sample(1, 1)[0]
torque = true_model.torque(truth, q, qd, qdd) + 0.3 * np.random.default_rng(0).normal(size=q.shape)
run = Samples(time, q, qd, qdd, torque, "torque")

# %%
found = compare_friction(robot, run, laws=candidates(("coulomb-offset", "asymmetric", "stribeck")), blocks=8)
head, rows = found.table()
print(head, *rows, sep="\n")
print(found.reason)
print("breakaway speeds [rad/s]:", np.round(found.breakaway_speeds(), 3))

# %% [markdown]
# Differences are in nats with their standard error: a law that is behind by less than its error is as good.

# %%
fig, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
for j, ax in enumerate(axes):
    ax.errorbar(found.difference[:, j], range(len(found.names)), xerr=found.error[:, j], fmt="o")
    ax.set_yticks(range(len(found.names)), found.names)
    ax.set_xlabel(f"ELPD behind the best, {found.joints[j]} [nats]")
assert found.chosen.startswith("stribeck")

# %% [markdown]
# How well are those speeds known? The data are compressed once; every speed tried costs the same however long the log is.

# %%
profile = breakaway_profile(Observations(true_model, (run,)))
fig, ax = plt.subplots(figsize=(6, 3))
for joint, row, (low, high) in zip(robot.joint_names, profile.deviance, profile.interval):
    ax.semilogx(profile.grid, row, label=f"{joint}: {low:.3f} to {high:.3f} rad/s")
ax.set_ylim(0, 20)
ax.set_xlabel("breakaway speed [rad/s]")
ax.set_ylabel("deviance")
ax.legend()
assert np.all((profile.interval[:, 0] < 0.11) & (profile.interval[:, 1] > 0.09))
