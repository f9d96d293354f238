"""The extended dynamic model of the UR16e, simulated and set against MuJoCo and Pinocchio, table by table.

    python experiments/extended_model_ur16e/run.py                    every part
    python experiments/extended_model_ur16e/run.py stage1 speed       some of them
    python experiments/extended_model_ur16e/run.py --figures DIR      also draw torques and errors

Source: "Extended Dynamic Model for the UR16e 6-Degree-of-Freedom Robotic Manipulator". Each part writes
results/<part>.json; results.md is put together from them.
"""

import argparse
import json
import os
import platform
import sys
import time
import tomllib
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import jax  # noqa: E402
import mujoco  # noqa: E402
import numpy as np  # noqa: E402
import pinocchio as pin  # noqa: E402

import bayesid  # noqa: E402, F401
from bayesid.dynamics import mass_matrix, stribeck_law  # noqa: E402
from bayesid.inertia import min_eigenvalue  # noqa: E402
from bayesid.kinematics import CircleWithCosine, JointMotion, StraightSegments, follow, random_motion, ur_inverse_kinematics  # noqa: E402
from bayesid.kinematics.chain import chain_poses  # noqa: E402
from bayesid.logs import read_log  # noqa: E402
from bayesid.models import Model  # noqa: E402
from bayesid.regression import White, identify  # noqa: E402
from bayesid.robots import load_robot, mjcf_text, urdf_text  # noqa: E402
from bayesid.signals import samples_from_log  # noqa: E402
from bayesid.simulation import (  # noqa: E402
    Sensors,
    actuators_of,
    computed_torque,
    friction_held_over_a_step,
    friction_in_every_stage,
    plant_of,
    rms,
    rsd,
    simulate,
    simulate_mujoco,
    stack_plants,
)
from bayesid.simulation.plant import plant_torque  # noqa: E402

CONFIG = tomllib.loads((HERE / "config.toml").read_text())
REPORTED = CONFIG["reported"]
TORQUE = jax.jit(plant_torque)


def robot():
    return load_robot("ur16e_extended")


def pinocchio_model(machine):
    return pin.buildModelFromXML(urdf_text(machine).replace('type="continuous"', 'type="revolute"'))


def stage1():
    """Torques along eq. 30, q_i = a_i (1 - cos 2 pi t), by three engines; no friction, rotor inertias included."""
    machine = robot()
    amplitude = np.array([0.15, 0.2, 0.3, 0.25, 0.1, 0.5])
    t = np.arange(3001) / 1000.0
    w = 2 * np.pi
    q = amplitude * (1 - np.cos(w * t[:, None]))
    qd, qdd = amplitude * w * np.sin(w * t[:, None]), amplitude * w**2 * np.cos(w * t[:, None])
    ours = np.asarray(TORQUE(plant_of(machine), q.T, qd.T, qdd.T)).T
    model = mujoco.MjModel.from_xml_string(mjcf_text(machine))
    data = mujoco.MjData(model)
    other = pinocchio_model(machine)
    scratch = other.createData()
    by_mujoco, by_pinocchio = np.empty_like(ours), np.empty_like(ours)
    for k in range(len(t)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], qd[k], qdd[k]
        mujoco.mj_inverse(model, data)
        by_mujoco[k] = data.qfrc_inverse
        by_pinocchio[k] = pin.rnea(other, scratch, q[k], qd[k], qdd[k]) + machine.rotor_inertias * qdd[k]
    return {
        "samples": len(t),
        "torque_scale": np.abs(ours).max(0),
        "max_difference_mujoco": np.abs(ours - by_mujoco).max(0),
        "max_difference_pinocchio": np.abs(ours - by_pinocchio).max(0),
        "max_difference_between_mujoco_and_pinocchio": np.abs(by_mujoco - by_pinocchio).max(0),
        "reported": [1e-17, 1e-13],
        "wanted": 1e-12,
    }


def trajectory(name, **changes):
    """Joint motion of trajectory "a" or "b"; `changes` replace entries of the configuration."""
    settings = CONFIG[f"trajectory_{name}"] | changes
    if name == "a":
        path = CircleWithCosine(
            tuple(settings["centre"]),
            settings["radius"],
            settings["height"],
            settings["period"],
            settings["period"],
            settings["waves"],
        )
    else:
        path = StraightSegments(tuple(map(tuple, settings["waypoints"])), tuple(settings["times"]))
    return follow(robot(), path, settings["start"], CONFIG["rate"], "tool0")


def controller(plant, compensation=None):
    return computed_torque(plant, CONFIG["gains_kp"], CONFIG["gains_kv"], compensation)


COUPLINGS = {
    "Runge-Kutta, friction in every stage": {"integrator": "RK4", "coupling": friction_in_every_stage, "steps": 2},
    "Euler 0.5 ms, friction held": {"integrator": "Euler", "coupling": friction_held_over_a_step, "steps": 2},
    "Euler 0.05 ms, friction held": {"integrator": "Euler", "coupling": friction_held_over_a_step, "steps": 20},
    "Runge-Kutta 0.5 ms, friction held": {"integrator": "RK4", "coupling": friction_held_over_a_step, "steps": 2},
}


def stage2():
    """PD computed torque on both trajectories: this model against MuJoCo, coupled to friction in several ways."""
    plant = plant_of(robot())
    out = {}
    for name in "ab":
        motion = trajectory(name)
        ours = simulate(plant, controller(plant), motion, steps=2)
        fine = simulate(plant, controller(plant), motion, steps=16)
        part = {
            "rms_eadm": rms(motion.q, ours.q),
            "rsd_eadm": rsd(motion.q, ours.q),
            "peak_torque": np.abs(ours.torque).max(0),
            "torque_limit": plant.torque_limit,
            "saturated": bool(ours.saturated.any()),
            "own_step_error_q": np.abs(ours.q - fine.q).max(0),
            "own_step_error_torque": np.abs(ours.torque - fine.torque).max(0),
            "engines": {},
        }
        for label, settings in COUPLINGS.items():
            theirs = simulate_mujoco(plant, controller(plant), motion, **settings)
            part["engines"][label] = {
                "max_difference_q": np.abs(ours.q - theirs.q).max(0),
                "max_difference_torque": np.abs(ours.torque - theirs.torque).max(0),
                "rms_mpm": rms(motion.q, theirs.q),
                "rsd_mpm": rsd(motion.q, theirs.q),
            }
            print(name, label, part["engines"][label]["max_difference_q"].max(), file=sys.stderr)
        out[name] = part
        if FIGURES:
            draw(name, ours, theirs)
    return out


def variations():
    """RMS tracking error when the choices that the source leaves open are made otherwise (this model alone)."""
    plant = plant_of(robot())
    friction = actuators_of(robot())
    base = trajectory("a")
    rows = {"as chosen": (base, {})}
    centre = np.array(CONFIG["trajectory_a"]["centre"])
    rows["radius 0.05 m"] = (trajectory("a", radius=0.05), {})
    rows["radius 0.15 m"] = (trajectory("a", radius=0.15), {})
    rows["height 0"] = (trajectory("a", height=0.0), {})
    rows["two waves per turn"] = (trajectory("a", waves=2), {})
    rows["centre 0.1 m further out"] = (trajectory("a", centre=centre + [-0.06, -0.08, 0.0]), {})
    rows["starting at rest"] = (base, {"initial": (base.q[0], 0 * base.qd[0])})
    offset = np.array([0.2, 0, 0, 0, 0, 0])
    rows["starting 0.2 rad off in joint 1"] = (base, {"initial": (base.q[0] + offset, base.qd[0])})
    rows["friction compensated"] = (base, {"compensation": friction})
    out = {"reported": {"rms": REPORTED["rms_A_eadm"], "rsd": REPORTED["rsd_A_eadm"]}}
    for label, (motion, options) in rows.items():
        law = controller(plant, options.pop("compensation", None))
        run = simulate(plant, law, motion, steps=2, **options)
        out[label] = {"rms": rms(motion.q, run.q), "rsd": rsd(motion.q, run.q)}
        print(label, out[label]["rms"], file=sys.stderr)
    return out


def frames():
    """Which frame the printed centres of mass and inertias belong to, and what torques that reading gives."""
    machine, vendor = robot(), load_robot("ur16e")
    rng = np.random.default_rng(0)
    about_com = machine.inertials
    # The other reading: the printed inertia taken about the frame's origin instead of the centre of mass.
    about_origin = about_com.copy()
    for row in about_origin:
        m, c = row[0], row[1:4] / row[0]
        shift = m * ((c @ c) * np.eye(3) - np.outer(c, c))
        row[4:] -= shift[np.triu_indices(3)]
    q = rng.uniform(-np.pi, np.pi, (4000, 6))
    q[:, 2] = rng.uniform(-2.6, 2.6, 4000)
    zero = np.zeros_like(q)
    gravity = np.abs(np.asarray(TORQUE(plant_of(machine), q.T, zero.T, zero.T))).max(1)
    # The vendor's file describes the same arm in other link frames and the same joint angles.
    qd, qdd = rng.uniform(-1, 1, (2, 4000, 6))
    theirs = plant_of(vendor)
    ours = plant_of(machine, rotor_inertias=np.zeros(6))
    mine = np.asarray(TORQUE(ours, q.T, qd.T, qdd.T)).T
    other = np.asarray(TORQUE(theirs, q.T, qd.T, qdd.T)).T
    matrices = plant_of(machine)
    smallest = np.linalg.eigvalsh(np.moveaxis(np.asarray(jax.jit(mass_matrix, static_argnums=0)(machine, q.T)), -1, 0))[:, 0]
    heights = chain_poses(machine, q)[1][:, 5, 2]
    return {
        "min_pseudo_inertia_eigenvalue_about_com": np.asarray(min_eigenvalue(about_com)),
        "min_pseudo_inertia_eigenvalue_if_about_origin": np.asarray(min_eigenvalue(about_origin)),
        "smallest_mass_matrix_eigenvalue": smallest.min(),
        "gravity_torque_max": gravity,
        "share_of_torque_limit": gravity / matrices.torque_limit,
        "vendor_rms_torque": np.sqrt(np.mean(other**2, axis=0)),
        "vendor_rms_difference": np.sqrt(np.mean((mine - other) ** 2, axis=0)),
        "flange_height_range": [heights.min(), heights.max()],
        "ur10e_recording": on_recording(),
    }


def on_recording():
    """Share of a UR10e's measured torque left unexplained by the vendor's inertials, read in two ways; None without
    data.

    Drive gains are the published ones; rotor inertia and friction are fitted joint by joint, so that only the links
    differ.
    """
    root = Path(os.environ.get("BAYESID_DATA", HERE.parents[2] / "shared" / "datasets"))
    path = root / "ur10e_innopolis" / "dataset_ur10e" / "identification_data" / "ur-20_02_10-30sec_12harm.csv"
    if not path.exists():
        return None
    samples = samples_from_log(read_log(f"{path}@635:3510", "ur10e-innopolis"))
    machine = load_robot("ur10e")
    torque = samples.effort * np.array([10.0, 10.6956, 8.4566, 9.0029, 9.48, 10.1232])
    mirrored = machine.inertials.copy()
    mirrored[:, 1:4] *= -1.0
    out = {}
    for label, inertials in (
        ("as_printed", machine.inertials),
        ("centres_of_mass_mirrored", mirrored),
        ("no_links", 0 * mirrored),
    ):
        rigid = np.asarray(TORQUE(plant_of(machine, inertials=inertials), samples.q.T, samples.qd.T, samples.qdd.T)).T
        left = []
        for j in range(6):
            columns = np.column_stack([samples.qdd[:, j], samples.qd[:, j], samples.direction[:, j], np.ones(len(samples))])
            rest = torque[:, j] - rigid[:, j]
            rest = rest - columns @ np.linalg.lstsq(columns, rest, rcond=None)[0]
            left.append(np.sqrt(np.mean(rest**2)) / torque[:, j].std())
        out[label] = left
    return out


def kinematics():
    """Closed-form inverse kinematics of 10,000 random reachable poses per robot, checked by Pinocchio."""
    out = {}
    for name in ("ur3e", "ur5", "ur5e", "ur10e", "ur16e"):
        machine = load_robot(name)
        model = pinocchio_model(machine)
        data, frame = model.createData(), model.getFrameId("tool0")

        def poses(rows, model=model, data=data, frame=frame):
            rotations, positions = np.empty((len(rows), 3, 3)), np.empty((len(rows), 3))
            for k, row in enumerate(rows):
                pin.framesForwardKinematics(model, data, row)
                rotations[k], positions[k] = data.oMf[frame].rotation, data.oMf[frame].translation
            return rotations, positions

        q = np.random.default_rng(1).uniform(-np.pi, np.pi, (10_000, 6))
        rotation, position = poses(q)
        solutions = ur_inverse_kinematics(machine, rotation, position, "tool0")
        found, valid = np.asarray(solutions.q), np.asarray(solutions.valid)
        apart = np.nanmin(np.abs((found - q[:, None] + np.pi) % (2 * np.pi) - np.pi).max(-1), axis=1)
        again = poses(found[valid])
        owner = np.nonzero(valid)[0]
        on_device = jax.numpy.asarray(rotation), jax.numpy.asarray(position)
        spent, used = [], []
        for _ in range(10):
            start, cpu = time.perf_counter(), time.process_time()
            jax.block_until_ready(ur_inverse_kinematics(machine, *on_device, "tool0"))
            spent.append(time.perf_counter() - start)
            used.append(time.process_time() - cpu)
        out[name] = {
            "poses": len(q),
            "worst_true_configuration": apart.max(),
            "above_1e-9": int((apart > 1e-9).sum()),
            "worst_pose": max(np.abs(again[0] - rotation[owner]).max(), np.abs(again[1] - position[owner]).max()),
            "mean_solutions": valid.sum(1).mean(),
            "microseconds_per_pose": min(spent) / len(q) * 1e6,
            "cpu_microseconds_per_pose": min(used) / len(q) * 1e6,
        }
    return out


def speed():
    """One second of closed loop at 1 kHz for 256 robots at once, beside MuJoCo stepping one robot after another."""
    machine = robot()
    rng = np.random.default_rng(0)
    plants = [plant_of(machine, inertials=machine.inertials * rng.uniform(0.9, 1.1, (6, 1))) for _ in range(256)]
    together = stack_plants(plants)
    motion = trajectory("a")
    motion = JointMotion(*(getattr(motion, part)[:1001] for part in ("time", "q", "qd", "qdd")))
    law = controller(plant_of(machine))
    out = {"machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}", "steps": 2}
    start = time.perf_counter()
    simulate(together, law, motion, steps=2)
    out["first_call_s"] = time.perf_counter() - start
    spent, used = [], []
    for _ in range(3):
        start, cpu = time.perf_counter(), time.process_time()
        simulate(together, law, motion, steps=2)
        spent.append(time.perf_counter() - start)
        used.append(time.process_time() - cpu)
    samples = 256 * len(motion)
    out["wall_s"], out["cpu_s"] = min(spent), min(used)
    out["microseconds_per_robot_step"] = min(spent) / samples * 1e6
    out["cpu_microseconds_per_robot_step"] = min(used) / samples * 1e6
    model = mujoco.MjModel.from_xml_string(mjcf_text(machine, timestep=0.0005))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    data = mujoco.MjData(model)
    data.qpos[:] = motion.q[0]
    best = np.inf
    for _ in range(3):
        cpu = time.process_time()
        for _ in range(4000):
            mujoco.mj_step(model, data)
            mujoco.mj_step(model, data)
        best = min(best, (time.process_time() - cpu) / 4000 * 1e6)
    out["mujoco_two_runge_kutta_steps_without_control_and_friction_cpu_us"] = best
    law = jax.jit(law)
    start = time.process_time()
    simulate_mujoco(
        plant_of(machine), law, JointMotion(*(getattr(motion, p)[:501] for p in ("time", "q", "qd", "qdd"))), steps=2
    )
    out["mujoco_closed_loop_with_friction_callback_cpu_us"] = (time.process_time() - start) / 501 * 1e6
    return out


def coverage(robots=20):
    """Closed-loop logs of the same UR16e, each with its own sensor noise, identified: how often intervals hold the
    truth.
    """
    machine = robot()
    plant = plant_of(machine)
    motion = random_motion(machine, duration=20.0, rate=CONFIG["rate"], harmonics=8, seed=11)
    sensors = Sensors(
        position_noise=1e-5,
        velocity_noise=1e-3,
        effort_noise=np.array([1.5, 2.0, 1.0, 0.4, 0.3, 0.3]),
        effort_correlation=0.99,
        effort_step=0.01,
    )
    runs = simulate(stack_plants([plant] * robots), controller(plant), motion, steps=2, sensors=sensors, seed=5)
    model = Model(machine, stribeck_law(0.1))
    truth = model.nominal.copy()
    excess = machine.friction("breakaway") - machine.friction("coulomb")
    for joint, value in zip(machine.joint_names, excess, strict=True):
        truth[model.names.index(f"{joint}.stribeck")] = value
    beta = model.base.project(truth)
    inside, errors, spreads = {0.95: [], 0.9: []}, [], []
    white = []
    for k in range(robots):
        samples = samples_from_log(runs.member(k).log())
        found = identify(model, samples, method="wls").unconstrained
        for level, rows in inside.items():
            low, high = found.interval(level).T
            rows.append((low <= beta) & (beta <= high))
        low, high = identify(model, samples, method="wls", covariance=White()).unconstrained.interval(0.95).T
        white.append((low <= beta) & (beta <= high))
        errors.append(found.mean - beta)
        spreads.append(found.std)
    inside = {level: np.array(rows) for level, rows in inside.items()}
    errors, spreads = np.array(errors), np.array(spreads)
    return {
        "logs": robots,
        "base parameters": len(beta),
        "coverage of 95 % intervals": inside[0.95].mean(),
        "coverage of 90 % intervals": inside[0.9].mean(),
        "coverage of 95 % intervals with the white-noise covariance": np.mean(white),
        "logs whose coverage at 95 % is below 0.85": int((inside[0.95].mean(1) < 0.85).sum()),
        "rms of error over stated standard deviation": np.sqrt(np.mean((errors / spreads) ** 2)),
        "median stated standard deviation over true value (parameters above 0.1)": np.median(
            (spreads / np.abs(beta))[:, np.abs(beta) > 0.1]
        ),
        "median error over true value (parameters above 0.1)": np.median(
            (np.abs(errors) / np.abs(beta))[:, np.abs(beta) > 0.1]
        ),
        "least covered parameters": {
            name: share for share, name in sorted(zip(inside[0.95].mean(0).tolist(), found.names, strict=True))[:5]
        },
    }


def draw(name, ours, theirs):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(6, 3, figsize=(12, 14), sharex=True)
    for i in range(6):
        axes[i, 0].plot(ours.time, ours.torque[:, i], lw=0.8)
        axes[i, 1].plot(ours.time, 1e3 * ours.error[:, i], lw=0.8)
        axes[i, 2].plot(ours.time, 1e6 * (ours.q - theirs.q)[:, i], lw=0.8)
        axes[i, 0].set_ylabel(f"joint {i + 1}")
    for axis, title in zip(axes[0], ("torque [N m]", "tracking error [mrad]", "this model - MuJoCo [urad]"), strict=True):
        axis.set_title(title)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    figure.tight_layout()
    FIGURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURES / f"trajectory_{name}.png", dpi=110)
    plt.close(figure)


PARTS = {f.__name__: f for f in (stage1, stage2, variations, frames, kinematics, speed, coverage)}
FIGURES = None


def plain(value):
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{float(value):.6g}")
    return value.item() if isinstance(value, np.generic) else value


def row(label, values, form="{:.6f}"):
    return f"| {label} | " + " | ".join(form.format(v) for v in values) + " |"


def heading(*columns):
    return ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]


JOINTS = [f"joint {i}" for i in range(1, 7)]


def markdown(results):
    """The tables, from the results alone."""
    lines = ["# The extended model of the UR16e", ""]
    lines += ["Written by `python experiments/extended_model_ur16e/run.py`; do not edit.", ""]
    for name, part in results.items():
        lines += [f"## {name}", "", f"{' '.join(PARTS[name].__doc__.split())} ({part['date']}, {part['seconds']} s)", ""]
        lines += TABLES[name](part["result"]) + [""]
    return "\n".join(lines)


def table_stage1(r):
    form = "{:.1e}"
    return [
        *heading("largest absolute value [N m]", *JOINTS),
        row("torque", r["torque_scale"], "{:.2f}"),
        row("this model - MuJoCo", r["max_difference_mujoco"], form),
        row("this model - Pinocchio", r["max_difference_pinocchio"], form),
        row("MuJoCo - Pinocchio", r["max_difference_between_mujoco_and_pinocchio"], form),
        "",
        "Reported: 1e-17 to 1e-13 N m. Wanted: 1e-12 N m per unit of the torque scale.",
    ]


def table_stage2(r):
    lines = []
    for name, part in r.items():
        first = next(iter(part["engines"]))
        engine = part["engines"][first]
        upper = name.upper()
        lines += [f"### Trajectory {upper}", "", *heading("", *JOINTS)]
        for measure in ("rms", "rsd"):
            lines.append(row(f"{measure.upper()}, this model", part[f"{measure}_eadm"]))
            lines.append(row(f"{measure.upper()}, MuJoCo", engine[f"{measure}_mpm"]))
            lines.append(row(f"{measure.upper()}, reported, extended model", REPORTED[f"{measure}_{upper}_eadm"]))
            lines.append(row(f"{measure.upper()}, reported, multibody model", REPORTED[f"{measure}_{upper}_mpm"]))
        lines.append(row("peak torque [N m]", part["peak_torque"], "{:.1f}"))
        lines.append(row("torque limit [N m]", part["torque_limit"], "{:.0f}"))
        lines += [
            "",
            *heading("largest difference between this model and", "joints [rad]", "torque 1-3 [N m]", "torque 4-6 [N m]"),
        ]
        lines.append("| reported, against a multibody model | 4e-4 | 0.4 | 0.05 |")
        for label, e in part["engines"].items():
            torque = e["max_difference_torque"]
            lines.append(
                f"| MuJoCo, {label} | {max(e['max_difference_q']):.1e} | {max(torque[:3]):.1e} | {max(torque[3:]):.1e} |"
            )
        torque = part["own_step_error_torque"]
        lines.append(
            f"| itself with a step eight times finer | {max(part['own_step_error_q']):.1e} | {max(torque[:3]):.1e} | "
            f"{max(torque[3:]):.1e} |"
        )
        lines.append("")
    return lines


def table_variations(r):
    lines = [*heading("RMS [rad], trajectory A", *JOINTS)]
    lines += [row(label, part["rms"]) for label, part in r.items()]
    return lines


def table_frames(r):
    form = "{:.3g}"
    return [
        *heading("", *JOINTS),
        row(
            "least eigenvalue of the link's pseudo-inertia, inertia about its centre of mass",
            r["min_pseudo_inertia_eigenvalue_about_com"],
            form,
        ),
        row("the same, inertia about the frame's origin", r["min_pseudo_inertia_eigenvalue_if_about_origin"], form),
        row("largest gravity torque [N m]", r["gravity_torque_max"], "{:.1f}"),
        row("as a share of the limit", r["share_of_torque_limit"], "{:.2f}"),
        row("RMS torque of the vendor's UR16e, random states [N m]", r["vendor_rms_torque"], "{:.3f}"),
        row("RMS difference of this model from it [N m]", r["vendor_rms_difference"], "{:.4f}"),
        *[
            row(f"UR10e recording, share of torque unexplained, vendor's inertials {label.replace('_', ' ')}", shares, "{:.3f}")
            for label, shares in (r["ur10e_recording"] or {}).items()
        ],
        "",
        f"Smallest eigenvalue of the mass matrix over 4000 configurations: {r['smallest_mass_matrix_eigenvalue']:.4f} kg m^2.",
    ]


def table_kinematics(r):
    lines = [
        *heading(
            "robot",
            "worst true configuration [rad]",
            "above 1e-9",
            "worst pose error",
            "solutions per pose",
            "us per pose",
            "CPU us per pose",
        )
    ]
    lines += [
        f"| {name} | {e['worst_true_configuration']:.1e} | {e['above_1e-9']} of {e['poses']} | {e['worst_pose']:.1e} | "
        f"{e['mean_solutions']:.2f} | {e['microseconds_per_pose']:.2f} | {e['cpu_microseconds_per_pose']:.2f} |"
        for name, e in r.items()
    ]
    return lines


def table_facts(r):
    return [*heading("", "")] + [f"| {key} | {said(value)} |".replace("_", " ") for key, value in r.items()]


def said(value):
    if isinstance(value, dict):
        return ", ".join(f"{key} {item:.2f}" for key, item in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


TABLES = {
    "stage1": table_stage1,
    "stage2": table_stage2,
    "variations": table_variations,
    "frames": table_frames,
    "kinematics": table_kinematics,
    "speed": table_facts,
    "coverage": table_facts,
}


def main():
    global FIGURES
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"which parts: {', '.join(PARTS)} (all)")
    parser.add_argument("--figures", type=Path, help="folder to draw torques and errors into")
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown part {unknown.pop()}: choose among {', '.join(PARTS)}")
    FIGURES = arguments.figures
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    for name in arguments.parts or PARTS:
        start = time.perf_counter()
        result = plain(PARTS[name]())
        entry = {
            "command": f"python experiments/extended_model_ur16e/run.py {name}",
            "date": datetime.now(UTC).date().isoformat(),
            "seconds": round(time.perf_counter() - start, 1),
            "result": result,
        }
        (folder / f"{name}.json").write_text(json.dumps(entry, indent=1) + "\n")
    done = {name: json.loads((folder / f"{name}.json").read_text()) for name in PARTS if (folder / f"{name}.json").exists()}
    text = markdown(done)
    (HERE / "results.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
