"""The two-link arm: the exact model, the simplified one (C = Hdot / 2), and what the difference does.

    python experiments/two_link/run.py

Source: "Simplified Methodology for Obtaining the Dynamic Model of Robot Manipulators", table 2, eqs. 106-125, tables
1 and 3. Writes results.json and results.md.
"""

import json
import sys
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import jax  # noqa: E402
import numpy as np  # noqa: E402

import bayesid  # noqa: E402, F401
from bayesid import dynamics  # noqa: E402
from bayesid.kinematics import JointMotion, random_motion  # noqa: E402
from bayesid.models import Model  # noqa: E402
from bayesid.robots import load_robot  # noqa: E402
from bayesid.simulation import gravity_pd, joint_pd, l2_index, plant_of, rms, simplified, simulate  # noqa: E402

KP, KV, TARGET, PERIOD = [64.72, 32.36], [48.54, 6.472], np.array([np.pi / 4, np.pi / 2]), 2.5e-3
PUBLISHED = {"h11": (2.3515719820, 0.167616), "h12": (0.1019395200, 0.083808), "c21": 0.083808, "g": (38.46581442, 1.8270144)}


def compiled(module, name):
    return jax.jit(getattr(module, name), static_argnums=0)


MASS, CORIOLIS, GRAVITY, INVERSE = (
    compiled(dynamics, name) for name in ("mass_matrix", "coriolis_matrix", "gravity_torque", "inverse_dynamics")
)
SIMPLE_C, SIMPLE_INVERSE, LEFT_OUT = (
    compiled(simplified, name) for name in ("simplified_coriolis", "simplified_inverse_dynamics", "simplification_error")
)


def plants(robot):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"exact": plant_of(robot), "simplified": plant_of(robot, coriolis="symmetric")}


def coefficients(robot):
    """Largest deviation from the published coefficients over 1000 random states."""
    q, qd = np.random.default_rng(0).uniform(-3, 3, (2, 2, 1000))
    c, s = np.cos(q[1]), np.sin(q[1])
    h11, h12 = (a + b * c for a, b in (PUBLISHED["h11"], PUBLISHED["h12"]))
    mass = np.array([[h11, h12], [h12, np.full_like(c, 0.1019395200)]])
    gravity = np.array(
        [PUBLISHED["g"][0] * np.sin(q[0]) + PUBLISHED["g"][1] * np.sin(q.sum(0)), PUBLISHED["g"][1] * np.sin(q.sum(0))]
    )
    torque = np.array([-0.167616 * s * qd[1] * qd[0] - 0.083808 * s * qd[1] ** 2, 0.083808 * s * qd[0] ** 2])
    zero = np.zeros_like(q)
    simple = np.array([[-0.083808 * s * qd[1], -0.041904 * s * qd[1]], [-0.041904 * s * qd[1], 0 * s]])
    return {
        "H": np.abs(np.asarray(MASS(robot, q)) - mass).max(),
        "C qd": np.abs(np.asarray(INVERSE(robot, q, qd, zero)) - gravity - torque).max(),
        "G": np.abs(np.asarray(GRAVITY(robot, q)) - gravity).max(),
        "C of the simplified model": np.abs(np.asarray(SIMPLE_C(robot, q, qd)) - simple).max(),
    }


def identities(robot):
    """Passivity identity qd' (Hdot - 2 C) qd, and work of the torque left out, over 1000 random states."""
    q, qd = np.random.default_rng(1).uniform(-3, 3, (2, 2, 1000))
    exact = np.asarray(jax.jit(jax.vmap(lambda a, b: dynamics.coriolis_matrix(robot, a, b), (1, 1), 2))(q, qd))
    rate = 2 * np.asarray(SIMPLE_C(robot, q, qd))
    left_out = np.asarray(LEFT_OUT(robot, q, qd))
    return {
        "exact model": np.abs(np.einsum("is,ijs,js->s", qd, rate - 2 * exact, qd)).max(),
        "simplified model": np.abs(np.einsum("is,ijs,js->s", qd, rate - 2 * np.asarray(SIMPLE_C(robot, q, qd)), qd)).max(),
        "largest torque left out [N m]": np.abs(left_out).max(),
        "largest Coriolis torque [N m]": np.abs(np.einsum("ijs,js->is", exact, qd)).max(),
        "largest power of the torque left out [W]": np.abs(np.sum(left_out * qd, axis=0)).max(),
    }


def free(plant, start, duration, rate=1000.0):
    time_ = np.arange(round(duration * rate) + 1) / rate
    still = np.zeros((len(time_), 2))
    return simulate(plant, joint_pd(2, 0.0, 0.0), JointMotion(time_, still, still, still), initial=start)


def energy(robot, run):
    energy_ = jax.jit(lambda q, qd: dynamics.kinetic_energy(robot, q, qd) + dynamics.potential_energy(robot, q))
    return np.asarray(energy_(run.q.T, run.qd.T))


def free_motion(robot):
    """Ten seconds without friction and control: energy drift, and how far the simplified model strays."""
    start = np.array([1.2, 0.8]), np.array([2.0, -3.0])
    runs = {name: free(plant, start, 10.0) for name, plant in plants(robot).items()}
    out = {}
    for name, run in runs.items():
        total = energy(robot, run)
        kinetic = total - np.asarray(jax.jit(lambda q: dynamics.potential_energy(robot, q))(run.q.T))
        out[f"relative energy drift, {name}"] = np.abs(total - total[0]).max() / kinetic.max()
    apart = np.abs(runs["exact"].q - runs["simplified"].q)
    for seconds in (0.1, 1.0, 10.0):
        out[f"joint difference within {seconds:g} s [rad]"] = apart[: round(seconds * 1000) + 1].max()
    return out


def set_point(robot):
    """PD with gravity compensation from rest to (pi/4, pi/2), gains and sampling of the source, 5 s."""
    time_ = np.arange(round(5.0 / PERIOD) + 1) * PERIOD
    target = np.tile(TARGET, (len(time_), 1))
    motion = JointMotion(time_, target, 0 * target, 0 * target)
    exact = plant_of(robot)
    runs = {
        name: simulate(plant, gravity_pd(exact, KP, KV), motion, initial=(np.zeros(2), np.zeros(2)))
        for name, plant in plants(robot).items()
    }
    out = {f"L2 index, {name} [rad]": l2_index(run.time, run.error) for name, run in runs.items()}
    out["largest joint difference [rad]"] = np.abs(runs["exact"].q - runs["simplified"].q).max()
    out["largest torque difference [N m]"] = np.abs(runs["exact"].torque - runs["simplified"].torque).max()
    out["largest torque [N m]"] = np.abs(runs["exact"].torque).max()
    out["L2 index without gravity compensation, exact [rad]"] = l2_index(
        time_, simulate(exact, joint_pd(2, KP, KV), motion, initial=(np.zeros(2), np.zeros(2))).error
    )
    return out


def along_motions(robot):
    """Torque left out along random motions, as a share of the torque spent on motion (gravity taken off)."""
    out = {}
    for machine, label in ((robot, "two-link"), (load_robot("ur16e"), "UR16e")):
        for speed in (0.2, 1.0, 3.0):
            motion = random_motion(machine, duration=8.0, rate=100.0, seed=4)
            stretch = speed / np.abs(motion.qd).max()
            q, qd, qdd = motion.q.T, motion.qd.T * stretch, motion.qdd.T * stretch**2
            full, without = np.asarray(INVERSE(machine, q, qd, qdd)), np.asarray(SIMPLE_INVERSE(machine, q, qd, qdd))
            moving = full - np.asarray(GRAVITY(machine, q))
            gap = rms(full.T, without.T)
            out[f"{label}, peak joint speed {speed:g} rad/s"] = {
                "rms torque left out [N m]": gap,
                "share of the torque spent on motion": gap / rms(moving.T, 0 * moving.T),
                "share of the whole torque": gap / rms(full.T, 0 * full.T),
            }
    return out


def identification(robot):
    """What a fit does when its data come from the true arm but its regressor is the simplified model's: ideal data."""
    motion = random_motion(robot, duration=10.0, rate=100.0, harmonics=6, usage=1.0, seed=1)
    scale = 4.0 / np.abs(motion.qd).max()
    q, qd, qdd = motion.q, motion.qd * scale, motion.qdd * scale**2
    model = Model(robot, "none", rotor=False)
    base = model.base
    true = base.matrix @ model.nominal
    effort = model.torque(model.nominal, q, qd, qdd).ravel()
    regressor = model.regressor(q, qd, qdd)[:, :, base.independent].reshape(len(effort), -1)
    law = jax.jit(jax.vmap(lambda unit: simplified.simplified_inverse_dynamics(robot, q.T, qd.T, qdd.T, unit.reshape(2, 10))))
    units = np.eye(model.size)[list(base.independent)]
    simple = np.moveaxis(np.asarray(law(units)), 0, 2).transpose(1, 0, 2).reshape(len(effort), -1)
    estimates = {name: np.linalg.lstsq(y, effort, rcond=None)[0] for name, y in (("exact", regressor), ("simplified", simple))}
    return {
        "base parameters": list(base.names),
        "true": true,
        **estimates,
        "error, simplified": estimates["simplified"] - true,
        "error, exact": estimates["exact"] - true,
        "rms residual, simplified [N m]": float(np.sqrt(np.mean((simple @ estimates["simplified"] - effort) ** 2))),
    }


def evaluation(robot):
    """Time of one inverse dynamics evaluation, 4096 states at once."""
    states = np.random.default_rng(0).uniform(-2, 2, (3, 2, 4096))
    out = {}
    for name, law in (("exact", INVERSE), ("simplified", SIMPLE_INVERSE)):
        args = [jax.numpy.asarray(x) for x in states]
        start = time.perf_counter()
        jax.block_until_ready(law(robot, *args))
        out[f"first call, {name} [s]"] = time.perf_counter() - start
        used = []
        for _ in range(20):
            start = time.process_time()
            jax.block_until_ready(law(robot, *args))
            used.append(time.process_time() - start)
        out[f"CPU time per state, {name} [us]"] = min(used) / 4096 * 1e6
    out["reported symbolic derivation, Euler-Lagrange and simplified [s]"] = [29.124, 21.618]
    return out


PARTS = (coefficients, identities, free_motion, set_point, along_motions, identification, evaluation)


def plain(value):
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{float(value):.6g}")
    return value.item() if isinstance(value, np.generic) else value


def show(value):
    if isinstance(value, list):
        return ", ".join(show(item) for item in value)
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def markdown(results):
    lines = ["# The two-link arm and its simplified model", ""]
    lines += [f"Written by `{results['command']}` on {results['date']}; do not edit.", ""]
    for part in PARTS:
        found = results[part.__name__]
        lines += [f"## {part.__name__.replace('_', ' ')}", "", part.__doc__.strip(), ""]
        nested = all(isinstance(item, dict) for item in found.values())
        keys = list(next(iter(found.values()))) if nested else ["value"]
        lines += ["| | " + " | ".join(keys) + " |", "|" + " --- |" * (len(keys) + 1)]
        for label, item in found.items():
            cells = [show(item[key]) for key in keys] if nested else [show(item)]
            lines.append(f"| {label} | " + " | ".join(cells) + " |")
        lines.append("")
    lines += [
        "## Where it is harmless, where it is wrong",
        "",
        "The torque left out does no work, so energy balance and passivity hold for the simplified model too: they cannot",
        "tell it from the exact one. Its share of the torque of motion does not depend on speed, since both grow with the",
        "square of it. Slow motions and set points under feedback forgive it, because gravity and feedback dominate there;",
        'free motion, feedforward at speed and regressors do not. `coriolis="symmetric"` therefore warns.',
        "",
    ]
    return "\n".join(lines)


def main():
    robot = load_robot("two_link")
    results = {"command": "python experiments/two_link/run.py", "date": datetime.now(UTC).date().isoformat()}
    for part in PARTS:
        results[part.__name__] = plain(part(robot))
        print(part.__name__, results[part.__name__], file=sys.stderr)
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    text = markdown(results)
    (HERE / "results.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
