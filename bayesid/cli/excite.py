"""bayesid excite: design a motion for identification, or check how one was executed."""

from __future__ import annotations

OBJECTIVES = ("d-optimal", "condition", "a-optimal", "e-optimal", "expected-information", "ds-optimal")
FAMILIES = ("fourier-quintic", "fourier", "quintic-spline")
FORMATS = ("csv", "ros2", "mcap", "urscript", "franka")
SUBSETS = ("payload", "friction", "rotor", "gains")
EPILOG = """examples:
  bayesid excite --robot ur10e --period 30 --harmonics 12 --limits limits.toml --out design
  bayesid excite --robot panda --start 0,-0.8,0,-2.3,0,1.6,0.8 --floor 0 --formats csv,franka --out design
  bayesid excite --check run.csv design/trajectory.json --schema ur-rtde"""


def add_arguments(parser):
    parser.epilog = EPILOG
    parser.add_argument("--check", nargs=2, metavar=("LOG", "TRAJECTORY"), help="compare a recorded run with its design")
    parser.add_argument("--robot", metavar="R", help="built-in name, or a URDF, MJCF or TOML file")
    motion = parser.add_argument_group("motion")
    motion.add_argument(
        "--family", choices=FAMILIES, default="fourier-quintic", help="default fourier-quintic: at rest at both ends"
    )
    motion.add_argument("--period", type=float, default=30.0, metavar="T", help="seconds (default 30)")
    motion.add_argument("--harmonics", type=int, default=8, metavar="N", help="of the Fourier series (default 8)")
    motion.add_argument("--pieces", type=int, default=12, metavar="N", help="of the quintic spline (default 12)")
    motion.add_argument("--start", metavar="Q", help="start pose [rad], comma-separated (default: middle of the limits)")
    motion.add_argument("--end", metavar="Q", help="end pose [rad] (default: the start pose)")
    motion.add_argument("--hold", action="append", default=[], metavar="JOINT", help="keep a joint still (may be repeated)")
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--limits", metavar="FILE", help="TOML: lower, upper, velocity, acceleration, jerk, torque; one number or one per joint"
    )
    limits.add_argument("--no-torque", action="store_true", help="do not limit joint torques")
    limits.add_argument(
        "--model", metavar="RESULT", help="estimate (file or folder) whose torques are limited, with its uncertainty"
    )
    limits.add_argument(
        "--sigmas", type=float, default=2.0, metavar="X", help="standard deviations kept from the torque limit (default 2)"
    )
    limits.add_argument("--no-self-collision", action="store_true", help="do not keep the robot's capsules apart")
    limits.add_argument(
        "--clearance", type=float, default=0.02, metavar="M", help="between capsules, and to floor and walls (default 0.02)"
    )
    limits.add_argument("--floor", type=float, metavar="Z", help="height of the floor in the base frame [m]")
    limits.add_argument(
        "--wall", action="append", default=[], metavar="X,Y,Z,D", help="stay where X x + Y y + Z z >= D (may be repeated)"
    )
    limits.add_argument(
        "--tool-box", metavar="X,Y,Z,X,Y,Z", help="lower and upper corner for the origin of tool0 [m]; empty: open"
    )
    target = parser.add_argument_group("what to learn")
    target.add_argument("--objective", choices=OBJECTIVES, default="d-optimal", help="default d-optimal")
    target.add_argument(
        "--subset", metavar="WHAT", help=f"for ds-optimal: {', '.join(SUBSETS)}, or comma-separated parameter names"
    )
    target.add_argument("--gains", metavar="K", help="nominal drive gains [N m/A], comma-separated, for --subset gains")
    target.add_argument("--load-mass", type=float, metavar="KG", help="planned load for --subset gains or payload")
    target.add_argument("--friction", default="coulomb-offset", metavar="LAW", help="friction law (default coulomb-offset)")
    target.add_argument("--no-rotor", action="store_true", help="no rotor inertias: they are part of the links")
    target.add_argument("--noise", metavar="STD", help="of the measured effort per joint, comma-separated (default: 1 each)")
    target.add_argument("--sampling", type=float, default=0.1, metavar="S", help="grid of the information [s] (default 0.1)")
    target.add_argument("--prior", metavar="RESULT", help="estimate whose covariance is the prior of expected-information")
    target.add_argument(
        "--collected", action="append", default=[], metavar="TRAJECTORY", help="already run: its information counts"
    )
    work = parser.add_argument_group("optimiser")
    work.add_argument("--starts", type=int, default=4, metavar="N", help="random starts (default 4)")
    work.add_argument("--steps", type=int, default=500, metavar="N", help="steps of the best start (default 500)")
    work.add_argument("--seconds", type=float, default=45.0, metavar="S", help="wall clock for the optimiser (default 45)")
    work.add_argument("--initial", metavar="TRAJECTORY", help="start from this motion too")
    work.add_argument("--resume", metavar="FILE", help="write the state here, and go on from it if it exists")
    output = parser.add_argument_group("output")
    output.add_argument("--formats", default="csv,ros2", metavar="LIST", help=f"of {', '.join(FORMATS)} (default csv,ros2)")
    output.add_argument("--rate", type=float, default=100.0, metavar="HZ", help="of the CSV file (default 100)")
    log = parser.add_argument_group("with --check")
    log.add_argument("--schema", metavar="S", help="schema preset or TOML file of the log")
    log.add_argument("--rows", metavar="A:B", help="rows to use of the log, from 1, both included")
    log.add_argument("--drop-bad-rows", action="store_true", help="read a log with corrupt rows")
    _add_common(parser)


def run(args):
    return _check(args) if args.check else _design(args)


def _add_common(parser):
    from bayesid.cli.options import add_common

    add_common(parser)


def _design(args):
    import shlex
    import sys
    from pathlib import Path

    import bayesid
    from bayesid.cli.options import Progress
    from bayesid.errors import DesignError
    from bayesid.excitation import Excitation, design, write_animation, write_figures, write_formats
    from bayesid.results import RESULT_SCHEMA, json_text, write_folder

    if not args.robot:
        raise DesignError("name the robot with --robot, or check a run with --check LOG TRAJECTORY")
    formats = [name.strip() for name in args.formats.split(",") if name.strip()]
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise DesignError(f"--formats: unknown format '{unknown[0]}', choose from {', '.join(FORMATS)}")
    stages = Progress(True)
    stages.stage("compiling", "compile")
    problem = _problem(args)
    initial = Excitation.load(args.initial).coefficients if args.initial else None
    stages.stage("solving", "solve")
    bar = _Bar(args.quiet, args.seconds)
    try:
        found = design(
            problem,
            seed=args.seed,
            starts=args.starts,
            steps=args.steps,
            seconds=args.seconds,
            initial=initial,
            progress=bar,
            checkpoint=args.resume,
            robot_source=args.robot,
            command="bayesid " + shlex.join(sys.argv[1:]) if sys.argv[1:2] == ["excite"] else None,
        )
    finally:
        bar.close()
    record = found.design
    document = {
        "bayesid": bayesid.__version__,
        "schema": RESULT_SCHEMA,
        "command": "excite",
        "robot": found.robot_name,
        "base_dimension": len(problem.observation.names),
        "condition_number": record["values"]["condition_number"],
        "excitation": {key: record[key] for key in ("objective", "values", "predicted_std", "seed", "steps", "stopped_by")},
        "certificate": found.certificate.to_dict(),
    }
    if args.out:
        stages.stage("writing", "report")

        def fill(folder):
            found.save(folder / "trajectory.json")
            write_formats(found, folder, formats, args.rate)
            write_figures(found, folder, problem.robot)
            write_animation(found, folder / "animation.html", problem.robot, args.floor)
            document["timing_s"] = stages.done()
            (folder / "result.json").write_text(json_text(document), encoding="utf-8")

        write_folder(Path(args.out), fill)
    else:
        document["timing_s"] = stages.done()
    print(json_text(document) if args.json else "\n".join(_summary(found, document, args.out)))
    return 0


def _problem(args):
    import numpy as np

    from bayesid.errors import DesignError
    from bayesid.excitation import (
        Fourier,
        FourierQuintic,
        Limits,
        Problem,
        QuinticSpline,
        SelfCollision,
        ToolBox,
        Wall,
        information,
    )
    from bayesid.excitation.constraints import usable
    from bayesid.models import Model
    from bayesid.robots import load_robot

    robot = load_robot(args.robot)
    limits = Limits.read(args.limits, robot) if args.limits else Limits.of(robot)
    model = Model(robot, args.friction, rotor=not args.no_rotor)
    start = _numbers("--start", args.start, robot.dof) if args.start else _middle(limits)
    end = _numbers("--end", args.end, robot.dof) if args.end else start
    if args.family == "quintic-spline":
        family = QuinticSpline(args.period, args.pieces)
    else:
        family = {"fourier-quintic": FourierQuintic, "fourier": Fourier}[args.family](args.period, args.harmonics)
    constraints = []
    if not args.no_torque:
        constraints.append(_torque(args, model, limits.torque))
    elif args.model:
        raise DesignError("--model says whose torques to limit; leave out --no-torque")
    if not args.no_self_collision:
        constraints.append(SelfCollision(args.clearance))
    if args.floor is not None:
        constraints.append(Wall((0.0, 0.0, 1.0), args.floor, args.clearance))
    for text in args.wall:
        *normal, offset = _numbers("--wall", text, 4)
        constraints.append(Wall(tuple(normal), offset, args.clearance))
    if args.tool_box:
        corners = [float(x) if x.strip() else None for x in args.tool_box.split(",")]
        if len(corners) != 6:
            raise DesignError("--tool-box needs six values, lower and upper corner; an empty one leaves its side open")
        lower = tuple(-np.inf if x is None else x for x in corners[:3])
        upper = tuple(np.inf if x is None else x for x in corners[3:])
        constraints.append(ToolBox(lower, upper))
    unknown = [name for name in args.hold if name not in robot.joint_names]
    if unknown:
        raise DesignError(f"--hold {unknown[0]}: robot '{robot.name}' has the joints {', '.join(robot.joint_names)}")
    observation, objective = _target(args, model)
    problem = Problem(
        observation,
        family,
        limits,
        objective,
        start,
        end,
        constraints=tuple(c for c in constraints if usable(c, robot)),
        sampling=args.sampling,
        noise=_numbers("--noise", args.noise, robot.dof) if args.noise else None,
        free=tuple(name not in args.hold for name in robot.joint_names),
    )
    if args.collected:
        import dataclasses

        total = sum(_collected(path, problem, information) for path in args.collected)
        problem = dataclasses.replace(problem, collected=total)
    return problem


def _collected(path, problem, information):
    import dataclasses

    from bayesid.errors import DesignError
    from bayesid.excitation import Excitation
    from bayesid.excitation.excitation import fingerprint

    earlier = Excitation.load(path)
    if earlier.robot_hash != fingerprint(problem.robot):
        raise DesignError(f"{path}: was designed for another robot ('{earlier.robot_source}')")
    ran = dataclasses.replace(problem, family=earlier.family, start=earlier.start, end=earlier.end, limits=earlier.limits)
    return information(ran, earlier.coefficients)


def _target(args, model):
    """Observation and objective."""
    import numpy as np

    from bayesid.errors import DesignError
    from bayesid.excitation import (
        AOptimal,
        ConditionNumber,
        DOptimal,
        EOptimal,
        ExpectedInformation,
        GainObservation,
        PayloadObservation,
        Subset,
        TorqueObservation,
    )

    observation = TorqueObservation(model)
    if args.subset and args.objective != "ds-optimal":
        raise DesignError("--subset belongs to --objective ds-optimal")
    if args.objective == "ds-optimal":
        if not args.subset:
            raise DesignError(f"--objective ds-optimal needs --subset: {', '.join(SUBSETS)}, or parameter names")
        if args.subset == "payload":
            return PayloadObservation(model), DOptimal()
        if args.subset == "gains":
            if not args.gains or args.load_mass is None:
                raise DesignError(
                    "--subset gains needs --gains and --load-mass: without a known load, gains cannot be told from inertia"
                )
            gains = _numbers("--gains", args.gains, model.robot.dof)
            observation = GainObservation(model, tuple(gains), args.load_mass)
            wanted = [i for i, name in enumerate(observation.names) if name.endswith(".drive_gain")]
        elif args.subset in ("friction", "rotor"):
            wanted = [i for i, kind in enumerate(model.base.kinds) if kind == args.subset]
            if not wanted:
                raise DesignError(f"--subset {args.subset}: the model has no such parameter of its own")
        else:
            names = [name.strip() for name in args.subset.split(",")]
            missing = [name for name in names if name not in observation.names]
            if missing:
                raise DesignError(f"--subset: no base parameter '{missing[0]}'; there are {', '.join(observation.names)}")
            wanted = [observation.names.index(name) for name in names]
        return observation, Subset(tuple(wanted))
    if args.objective == "expected-information":
        if not args.prior:
            raise DesignError("--objective expected-information needs --prior RESULT")
        _, covariance = _estimate(args.prior, model)
        matrix = model.base.matrix
        prior = matrix @ covariance @ matrix.T
        return observation, ExpectedInformation(prior + 1e-12 * np.trace(prior) / len(prior) * np.eye(len(prior)))
    return observation, {"d-optimal": DOptimal, "condition": ConditionNumber, "a-optimal": AOptimal, "e-optimal": EOptimal}[
        args.objective
    ]()


def _torque(args, model, limit):
    from bayesid.excitation import TorqueLimit
    from bayesid.models import Model

    if not args.model:
        return TorqueLimit.nominal(model, limit)
    parameters, covariance = _estimate(args.model, model)
    if "load" in model.friction.needs:
        identified = getattr(_loaded(args.model).predictor, "model", model)
        model = Model(model.robot, identified.friction, model.rotor, identified.reference)
    return TorqueLimit(model, limit, parameters, covariance, args.sigmas)


def _loaded(path):

    from bayesid.results import Estimate

    return Estimate.load(path)


def _estimate(path, model):
    """Parameters (P,) and covariance (P, P) of a model from a saved estimate of its standard or base parameters."""
    import numpy as np

    from bayesid.errors import DesignError

    estimate = _loaded(path)
    if all(name in estimate.names for name in model.names):
        chosen = estimate.select(model.names)
        return np.array(chosen.mean), np.array(chosen.covariance)
    if all(name in estimate.names for name in model.base.names):
        chosen = estimate.select(model.base.names)
        covariance = np.zeros((model.size, model.size))
        covariance[np.ix_(model.base.independent, model.base.independent)] = chosen.covariance
        return model.base.standard(chosen.mean, model.nominal[model.base.dependent]), covariance
    raise DesignError(
        f"{path}: its parameters are not those of robot '{model.robot.name}' with friction '{model.friction.name}': "
        "give the same --friction as when it was identified"
    )


def _check(args):
    import bayesid
    from bayesid.cli.options import from_registry
    from bayesid.errors import DesignError
    from bayesid.excitation import Excitation, check_execution
    from bayesid.logs import check_robot, load_schema, read_log
    from bayesid.results import RESULT_SCHEMA, json_text, write_folder
    from bayesid.robots import load_robot
    from bayesid.signals import samples_from_log

    path, trajectory = args.check
    if not args.schema:
        raise DesignError("--check needs --schema, which says what the log's columns are")
    excitation = Excitation.load(trajectory)
    robot = load_robot(args.robot) if args.robot else excitation.robot
    name = from_registry(path)
    if args.rows and "@" not in name:
        name = f"{name}@{args.rows}"
    log = check_robot(read_log(name, load_schema(args.schema), drop_bad_rows=args.drop_bad_rows), robot)
    noise = _numbers("--noise", args.noise, robot.dof) if args.noise else None
    found = check_execution(excitation, samples_from_log(log, trim=False), robot, noise)
    document = {
        "bayesid": bayesid.__version__,
        "schema": RESULT_SCHEMA,
        "command": "excite",
        "robot": robot.name,
        "data": [{"path": log.path, "sha256": log.sha256}],
        "trajectory": trajectory,
        "execution": found.to_dict(),
    }
    if args.out:
        write_folder(args.out, lambda folder: (folder / "result.json").write_text(json_text(document), encoding="utf-8"))
    print(json_text(document) if args.json else "\n".join(_execution(found)))
    return 0 if found.as_designed else 1


def _execution(found):
    from bayesid.cli.options import table

    verdict = "executed as designed" if found.as_designed else "NOT executed as designed"
    yield f"{verdict}: starts at {found.start:.3f} s of the log, which holds {100 * found.covered:.1f} % of the motion"
    yield f"played at {found.speed:.4f} of its speed"
    rows = [
        (name, f"{a:.5f}", f"{b:.5f}", f"{100 * c:.2f}")
        for name, a, b, c in zip(found.joint_names, found.position_rms, found.position_max, found.relative)
    ]
    yield table(("joint", "RMS error [rad]", "max [rad]", "% of amplitude"), rows)
    yield f"condition number {found.condition_designed:.1f} as designed, {found.condition_run:.1f} as run"
    order = found.std_ratio.argsort()[::-1][:8]
    yield "standard deviations as run over as designed, the largest:"
    yield table(("parameter", "ratio"), [(found.names[i], f"{found.std_ratio[i]:.3f}") for i in order])


def _summary(found, document, out):
    record = found.design
    values, worst = record["values"], found.certificate.worst
    yield f"{found.robot_name}: {found.family.name}, {found.period:g} s, {document['base_dimension']} base parameters"
    yield f"condition number {values['condition_number']:.2f}, log det per sample {values['log_det_per_sample']:.2f}"
    effort = f"{record['steps']} steps in {record['seconds']} s (ended by {record['stopped_by']})"
    yield f"{record['objective']['name']}: {values['objective']:.6g} after {effort}"
    yield (
        f"every limit held at {found.certificate.instants} instants, {1e3 * found.certificate.step:.3g} ms apart; "
        f"tightest: {worst.what} at {worst.time:.2f} s, {worst.margin:.3g} {worst.unit} to spare"
    )
    yield f"least determined: {', '.join(values['weakest_direction'])}"
    if out:
        yield f"wrote {out}: trajectory.json, animation.html, motion.svg, path.svg, result.json and the formats asked for"


def _numbers(option, text, count):
    import numpy as np

    from bayesid.errors import DesignError

    try:
        values = np.array([float(part) for part in text.split(",")])
    except ValueError:
        raise DesignError(f"{option} {text}: not comma-separated numbers") from None
    if len(values) != count:
        raise DesignError(f"{option} {text}: has {len(values)} values, needs {count}")
    return values


def _middle(limits):
    import numpy as np

    bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)
    return np.where(bounded, 0.5 * (np.where(bounded, limits.lower, 0.0) + np.where(bounded, limits.upper, 0.0)), 0.0)


class _Bar:
    """A progress bar on standard error: time spent of the budget, objective, worst violation; only for jobs over a second."""

    def __init__(self, quiet, seconds):
        self._quiet, self._seconds, self._bar = quiet, seconds, None

    def __call__(self, report):
        if self._quiet or report.seconds < 1.0:
            return
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(total=round(self._seconds, 1), unit="s", bar_format="{l_bar}{bar}| {n:.0f}/{total:.0f} s{postfix}")
        self._bar.n = min(self._seconds, report.seconds)
        text = f"objective {report.objective:.5g}, worst violation {report.violation:.2g}, step {report.steps}"
        self._bar.set_postfix_str(text + (f", {report.starts} starts" if report.starts > 1 else ""))

    def close(self):
        if self._bar is not None:
            self._bar.close()
