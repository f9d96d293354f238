"""bayesid payload: what the robot holds, from a wrench log or from joint torques; or the motion that would tell."""

from __future__ import annotations

from bayesid.cli.options import (
    Progress,
    add_common,
    add_log_options,
    check_gains_used,
    data_part,
    gains_part,
    positive,
    read_gains,
    read_samples,
    show_warnings,
    table,
)

METHODS = ("joint", "momentum", "least-squares", "recursive", "total-least-squares", "kalman")


def add_arguments(parser):
    parser.epilog = (
        "three uses:\n"
        "  wrench sensor   bayesid payload wrench.csv --robot ur16e\n"
        "  joint torques   bayesid payload loaded.csv --unloaded unloaded.csv --robot ur10e --schema S [--drive-gains K]\n"
        "  before moving   bayesid payload --plan --robot ur16e --mass-guess 8"
    )
    parser.add_argument("log", nargs="?", metavar="LOG", help="wrench log (CSV with header), or log of the loaded robot")
    parser.add_argument("--robot", required=True, metavar="R", help="built-in name, or a URDF, MJCF or TOML file")
    parser.add_argument(
        "--frame", metavar="F", help="frame that the payload is given in, and where the sensor sits (default: last link's)"
    )
    parser.add_argument(
        "--consistent",
        choices=("lmi", "posterior", "off"),
        default="lmi",
        help="physical consistency: nearest body (default), posterior on the consistent set, or as estimated",
    )
    group = parser.add_argument_group("wrench sensor")
    group.add_argument("--method", choices=METHODS, default="joint", help="estimator (default joint)")
    group.add_argument("--noise", metavar="W,F,M", help="white noise per sample: rad/s, N, N m (default: from the record)")
    group.add_argument(
        "--bias",
        metavar="F,M",
        default="5,0.5",
        help="standard deviation of unknown sensor bias: N, N m (default 5,0.5; 0,0: tared)",
    )
    group.add_argument(
        "--tilt",
        type=float,
        default=0.01,
        metavar="RAD",
        help="standard deviation of the unknown tilt of the base (default 0.01)",
    )
    group.add_argument(
        "--part",
        action="append",
        default=[],
        metavar="NAME=A:B",
        help="span of time [s] of a part of the motion, for --method momentum: rest, 'linear 1', 'turn 1', ...",
    )
    group = parser.add_argument_group("joint torques or currents")
    group.add_argument(
        "--unloaded",
        action="append",
        default=[],
        metavar="LOG|RESULT",
        help="log without payload (may be repeated), or the result folder of 'bayesid identify'",
    )
    group.add_argument(
        "--difference", action="store_true", help="the unloaded log is the same motion: estimate from the difference"
    )
    group.add_argument("--friction", default="sublinear", metavar="LAW", help="friction law (default sublinear)")
    add_log_options(parser, robot=False)
    group = parser.add_argument_group("goal and planning")
    group.add_argument("--goal-mass", type=positive, metavar="PERCENT", help="wanted half width of the mass's 95%% interval")
    group.add_argument(
        "--goal-com", type=positive, metavar="MM", help="wanted half width of the centre of mass's 95%% intervals"
    )
    group.add_argument("--plan", action="store_true", help="smallest motion that meets the goal, and what to expect of it")
    group.add_argument("--mass-guess", type=positive, default=5.0, metavar="KG", help="payload assumed by --plan (default 5)")
    group.add_argument(
        "--reach", type=positive, default=0.1, metavar="M", help="largest distance [m] and angle [rad] of --plan (default 0.1)"
    )
    group.add_argument(
        "--example", metavar="FILE", help="write the wrench log of a simulated motion with an 8.12 kg object, and stop"
    )
    add_common(parser)


def run(args):
    from bayesid.errors import DataError
    from bayesid.robots import load_robot

    show_warnings(args.quiet)
    robot = load_robot(args.robot)
    frame = args.frame or robot.link_names[-1]
    robot.frame(frame)
    if args.example:
        return _example(args, robot, frame)
    if args.plan:
        return _plan(args, robot, frame)
    if not args.log:
        raise DataError("no log: name a wrench log, or a loaded robot's log with --unloaded, or ask for --plan")
    progress = Progress(args.quiet)
    progress.stage("reading", "read")
    if args.unloaded:
        estimate, data = _from_torques(args, robot, frame, progress)
        readings = None
    else:
        estimate, data, readings = _from_wrench(args, robot, frame, progress)
    return _finish(args, robot, frame, _consistent(args, estimate), data, readings, progress)


def _from_wrench(args, robot, frame, progress):
    from bayesid import payload
    from bayesid.results import file_sha256

    record = payload.read_wrench_log(args.log, robot, frame, _parts(args.part))
    noise = _noise(args.noise) or payload.noise_of(record)
    progress.stage("solving", "solve")
    force, moment = _numbers(args.bias, 2, "--bias")
    if args.method == "joint":
        estimate = payload.joint_estimate(record, noise, payload.SensorPrior(force, moment, args.tilt))
    else:
        estimate = _estimators()[args.method](record, noise)
    stream = payload.PayloadStream(noise, record.motion.step, tuple(estimate.select(payload.NAMES).mean), record.motion.gravity)
    _, readings = stream.run(record)
    data = [
        {
            "path": args.log,
            "sha256": file_sha256(args.log),
            "samples": len(record),
            "duration_s": float(record.motion.time[-1] - record.motion.time[0]),
        }
    ]
    return estimate, data, (record.motion.time[1:], readings)


def _estimators():
    from bayesid import payload

    return {
        "momentum": payload.momentum_estimate,
        "least-squares": payload.least_squares,
        "recursive": payload.recursive_least_squares,
        "total-least-squares": payload.total_least_squares,
        "kalman": payload.extended_kalman_filter,
    }


def _from_torques(args, robot, frame, progress):
    from pathlib import Path

    from bayesid.errors import DataError
    from bayesid.gains import gain_friction
    from bayesid.models import Model
    from bayesid.payload import payload_from_difference, payload_from_torques
    from bayesid.results import Estimate

    if not args.schema:
        raise DataError("--schema is needed to read a robot's log: a preset (see 'bayesid datasets list') or a TOML file")
    gains, gain_covariance = read_gains(args.drive_gains, robot)
    logs, (loaded,) = read_samples([args.log], args, robot)
    check_gains_used(gains, [loaded])
    model = Model(robot, gain_friction(args.friction))
    first = Path(args.unloaded[0])
    options = {"gains": gains, "gain_covariance": gain_covariance, "frame": frame}
    if first.is_dir() or first.suffix == ".json":
        if args.difference or len(args.unloaded) > 1:
            raise DataError(f"{first}: a result stands alone as --unloaded; --difference needs an unloaded log")
        saved = [first / name for name in ("base.json", "estimate.json") if (first / name).is_file()]
        unloaded = Estimate.load(saved[0] if saved else first / "estimate.json" if first.is_dir() else first)
        model = getattr(unloaded.predictor, "model", model)
        options["gains"] = _gains_of_result(first, unloaded, gains)
        progress.stage("solving", "solve")
        return payload_from_torques(model, unloaded, loaded, **options), data_part(logs, [loaded])
    more, runs = read_samples(args.unloaded, args, robot)
    progress.stage("solving", "solve")
    data = data_part([*logs, *more], [loaded, *runs])
    if args.difference:
        if len(runs) > 1:
            raise DataError("--difference takes one unloaded log")
        return payload_from_difference(model, runs[0], loaded, **options), data
    return payload_from_torques(model, runs, loaded, **options), data


def _gains_of_result(path, unloaded, given):
    """Drive gains for a log that is compared with an identified model: those that the model was identified with."""
    import numpy as np

    from bayesid.errors import DataError

    used = getattr(unloaded.predictor, "gains", None)
    if used is None or given is None:
        return given if used is None else used
    if not np.allclose(used, given, rtol=1e-6):
        raise DataError(
            f"{path}: was identified with the drive gains {','.join(f'{k:.6g}' for k in used)}; others here would weigh the "
            "difference between the gains as payload: leave --drive-gains out, or identify with the same ones"
        )
    return given


def _consistent(args, estimate):
    from bayesid.errors import DataError
    from bayesid.payload import consistent_estimate, payload_posterior

    mass, spread = estimate.mean[0], estimate.std[0]
    if args.consistent != "off" and mass < -3.0 * spread:
        raise DataError(
            f"the payload comes out with a negative mass, {mass:.3g} +- {spread:.2g} kg: check that the loaded and unloaded "
            "logs are not exchanged, and the sign of the effort; --consistent off takes it as it is"
        )
    if args.consistent == "posterior":
        return payload_posterior(estimate, seed=args.seed)
    return estimate if args.consistent == "off" else consistent_estimate(estimate)


def _finish(args, robot, frame, estimate, data, readings, progress):
    import numpy as np

    import bayesid
    from bayesid import payload
    from bayesid.results import RESULT_SCHEMA, json_text, parameter_rows, write_folder

    about = payload.about_com(estimate)
    goal = _goal(args)
    met = True if goal is None else bool(goal.met(about.mean[0], about.std[0], about.std[1:4]))
    smallest = payload.consistency(estimate.select(payload.NAMES).mean)
    document = {
        "bayesid": bayesid.__version__,
        "schema": RESULT_SCHEMA,
        "command": "payload",
        "robot": robot.name,
        "frame": frame,
        "method": estimate.method,
        "data": data,
        "drive_gains": gains_part(args.drive_gains, *read_gains(args.drive_gains, robot)),
        "parameters": parameter_rows(about) + parameter_rows(estimate),
        "covariance": estimate.covariance_method,
        "physical": {"consistent": smallest > 0, "min_eigenvalue": [smallest]},
        "diagnostics": {k: v for k, v in estimate.meta.items() if k not in ("frame",)},
        "goal": None if goal is None else {"mass_percent": 100 * goal.mass, "com_mm": 1000 * goal.com, "met": met},
    }
    notes = _notes(estimate, smallest)
    if readings is not None:
        time, stream = readings
        changes = np.asarray(time)[np.asarray(stream.changed)].tolist()
        document["stream"] = {"changes_s": changes}
        notes += [f"the load changed at {at:.3f} s: the estimate mixes both" for at in changes]
        if goal is not None:
            precise = goal.met(stream.mass, stream.mass_std, stream.com_std)
            document["stream"]["goal_met_s"] = float(time[int(np.argmax(precise))]) if precise.any() else None
            if precise.any():
                notes.append(f"the goal was met after {document['stream']['goal_met_s']:.3f} s")
    document["notes"] = notes
    if args.out:
        progress.stage("writing", "report")

        def fill(folder):
            estimate.save(folder / "estimate.json")
            (folder / "payload.script").write_text(payload.urscript(estimate), encoding="utf-8")
            (folder / "franka_load.json").write_text(payload.franka_json(estimate), encoding="utf-8")
            payload.interval_figure(estimate).savefig(folder / "payload.png")
            if readings is not None:
                payload.convergence_figure(*readings, goal=goal).savefig(folder / "convergence.png")
            document["timing_s"] = progress.done()
            (folder / "result.json").write_text(json_text(document), encoding="utf-8")

        write_folder(args.out, fill)
    else:
        document["timing_s"] = progress.done()
    if args.json:
        print(json_text(document))
        return 0 if met else 1
    print(_parameter_table(about))
    print(f"\nin frame {frame} of {robot.name}; {estimate.method}, covariance {estimate.covariance_method['method']}")
    for note in notes:
        print(f"note: {note}")
    print(payload.urscript(estimate).splitlines()[-1])
    if goal is not None:
        print(
            f"goal {'met' if met else 'missed'}: mass within {100 * goal.mass:g} %, centre of mass "
            f"within {1000 * goal.com:g} mm"
        )
    if args.out:
        print(f"wrote {args.out}: result.json, estimate.json, payload.script, franka_load.json, figures")
    return 0 if met else 1


def _notes(estimate, smallest):
    notes = []
    scale = estimate.meta.get("residual_scale", 1.0)
    if scale > 1.2:
        notes.append(
            f"residuals are {scale:.2g} times what the noise explains: intervals are widened; check "
            f"the frame, the bias and the noise"
        )
    if estimate.meta.get("consistent") == "projected":
        notes.append(
            f"no body has the unconstrained estimate; the nearest that exists is "
            f"{estimate.meta['moved_std']:.2g} standard deviations away"
        )
    if smallest <= 0:
        notes.append("no body has these parameters (pseudo-inertia not positive definite): use --consistent lmi, or move more")
    return notes


def _plan(args, robot, frame):
    import numpy as np

    import bayesid
    from bayesid import payload
    from bayesid.errors import DesignError
    from bayesid.results import RESULT_SCHEMA, json_text, parameter_rows

    if args.out:
        raise DesignError("--out has no part in --plan, which prints what it finds: leave it out, or use --json")
    if robot.dof != 6:
        raise DesignError(f"--plan starts at the elbow-up pose of a six-joint arm; robot '{robot.name}' has {robot.dof} joints")
    force, moment = _numbers(args.bias, 2, "--bias")
    noise = _noise(args.noise) or payload.SensorNoise(0.5e-3, 0.1, 5e-3)
    size = 0.1
    assumed = payload.from_com(
        np.array([args.mass_guess, 0.0, 0.0, size, *(args.mass_guess * 0.4 * size**2 * np.eye(3))[np.triu_indices(3)]])
    )
    largest = payload.tool_motion(robot, args.reach, args.reach, frame=frame)
    goal = _goal(args) or payload.StopRule()
    plan = payload.smallest_motion(largest, assumed, noise, goal, payload.SensorPrior(force, moment, args.tilt), largest=1.0)
    joints = payload.joint_motion(robot, plan.motion, rate=100.0, frame=frame)
    v, a, w, wd = plan.motion.accelerations()
    document = {
        "bayesid": bayesid.__version__,
        "schema": RESULT_SCHEMA,
        "command": "payload",
        "robot": robot.name,
        "plan": {
            "distance_m": plan.motion.distance,
            "angle_rad": plan.motion.angle,
            "duration_s": plan.motion.duration,
            "peak": {"m/s": v, "m/s^2": a, "rad/s": w, "rad/s^2": wd},
            "largest_joint_travel_rad": float(np.ptp(joints.q, axis=0).max()),
            "noise": {"angular_velocity": noise.angular_velocity, "force": noise.force, "moment": noise.moment},
            "assumed_mass_kg": args.mass_guess,
            "goal": {"mass_percent": 100 * goal.mass, "com_mm": 1000 * goal.com, "met": plan.met},
        },
        "parameters": parameter_rows(plan.expected),
    }
    if args.json:
        print(json_text(document))
        return 0 if plan.met else 1
    print(
        f"linear {100 * plan.motion.distance:.3g} cm, turns {1000 * plan.motion.angle:.3g} mrad, "
        f"{plan.motion.duration:g} s in all; "
        f"peak {100 * v:.3g} cm/s, {100 * a:.3g} cm/s^2, {1000 * w:.3g} mrad/s, {1000 * wd:.3g} mrad/s^2"
    )
    print(f"joints move by {document['plan']['largest_joint_travel_rad']:.3g} rad at most from {robot.name}'s elbow-up pose\n")
    print(
        table(
            ("expected", "std", "95 % half width", "unit"),
            [
                (n, f"{s:.3g}", f"{1.96 * s:.3g}", u)
                for n, s, u in zip(plan.expected.names, plan.expected.std, plan.expected.units)
            ],
        )
    )
    words = "meets" if plan.met else "misses"
    print(f"\n{words} the goal: mass within {100 * goal.mass:g} %, centre of mass within {1000 * goal.com:g} mm (95 %)")
    return 0 if plan.met else 1


def _example(args, robot, frame):
    """The wrench log of a simulated motion of the reference's first object."""
    import numpy as np

    from bayesid import payload

    motion = payload.tool_motion(robot, args.reach, args.reach, frame=frame)
    held = payload.from_com(np.array([8.12, 0.262, -0.114, 0.032, 0.239, 0.014, -0.023, 0.293, 0.086, 0.303]))
    noise = _noise(args.noise) or payload.SensorNoise(0.5e-3, 0.1, 5e-3)
    record = payload.simulated_record(motion, held, noise, seed=args.seed)
    joints = payload.joint_motion(robot, motion, frame=frame)
    payload.write_wrench_log(args.example, joints.q, record, joints.qd)
    print(f"wrote {args.example}: {len(record)} samples, 1 kHz, 8.12 kg at (0.262, -0.114, 0.032) m")
    return 0


def _parameter_table(estimate):
    interval = estimate.interval(0.95)
    rows = [
        (name, f"{mean:.5g}", f"{std:.2g}", f"[{low:.5g}, {high:.5g}]", unit)
        for name, mean, std, (low, high), unit in zip(estimate.names, estimate.mean, estimate.std, interval, estimate.units)
    ]
    return table(("parameter", "estimate", "std", "95 % interval", "unit"), rows)


def _goal(args):
    from bayesid.payload import StopRule

    if args.goal_mass is None and args.goal_com is None:
        return None
    return StopRule(
        float("inf") if args.goal_mass is None else args.goal_mass / 100,
        float("inf") if args.goal_com is None else args.goal_com / 1000,
    )


def _noise(text):
    from bayesid.payload import SensorNoise

    return None if text is None else SensorNoise(*_numbers(text, 3, "--noise"))


def _numbers(text, count, option):
    from bayesid.errors import DataError

    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != count:
        raise DataError(f"{option} {text}: not {count} comma-separated numbers")
    return values


def _parts(texts):
    from bayesid.errors import DataError

    parts = []
    for text in texts:
        name, _, span = text.partition("=")
        start, _, end = span.partition(":")
        try:
            parts.append((name, float(start), float(end)))
        except ValueError:
            raise DataError(f"--part {text}: not NAME=START:END in seconds") from None
    return parts
