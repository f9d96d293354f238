"""bayesid drive-gains: drive gains (N m/A) with intervals, from logs of motor currents without and with a weighed load."""

from __future__ import annotations

from bayesid.cli.options import Progress, add_common, add_delay_option, data_part, positive, read_samples, show_warnings, table

METHODS = ("ml", "ls", "lmi", "tls")
EXPLANATION = {
    "ml": "maximum likelihood, noise where it is measured: in the current",
    "ls": "least squares of K i = W pi (Gautier, Briot 2014): the noisy current is a regressor, so gains come out low",
    "lmi": "the same with physical consistency; a gain at a constraint is not determined",
    "tls": "mixed total least squares: noise in currents only, all joints consistent by assumption",
}

MOTOR = (
    "motor's constant: the 95 % interval of what a datasheet states. The gear's loss while driving may differ from that while\n"
    "driven back, which no current can tell from the gain; torques beyond the gear are K i all the same."
)


def add_arguments(parser):
    parser.epilog = (
        "uses:\n"
        "  bayesid drive-gains --unloaded free.csv --loaded loaded.csv --payload-mass 2.8 --robot ur10e --schema S\n"
        "  bayesid drive-gains --plan --unloaded free.csv --payload-mass 2.8 --payload-com 0,0,0.1 --robot ur10e --schema S"
    )
    parser.add_argument("--unloaded", nargs="+", required=True, metavar="LOG", help="logs without a load")
    parser.add_argument("--loaded", nargs="+", default=[], metavar="LOG", help="logs with the weighed load on the last link")
    parser.add_argument(
        "--payload-mass", nargs="+", type=float, required=True, metavar="KG", help="weighed mass; one for all, or one per log"
    )
    parser.add_argument("--payload-com", metavar="X,Y,Z", help="known centre of mass [m] in the last link's frame")
    parser.add_argument("--robot", required=True, metavar="R", help="built-in name, or a URDF, MJCF or TOML file")
    parser.add_argument("--schema", required=True, metavar="S", help="preset (see 'bayesid datasets list') or TOML file")
    parser.add_argument("--method", choices=METHODS, default="ml", help="estimator (default ml)")
    parser.add_argument("--compare", action="store_true", help="all methods side by side, with an explanation")
    parser.add_argument("--plan", action="store_true", help="expected interval widths with the planned load; no loaded log")
    parser.add_argument(
        "--goal", type=positive, default=5.0, metavar="PERCENT", help="95%% half width wanted in --plan (default 5)"
    )
    parser.add_argument("--assume", metavar="K,...", help="gains assumed by --plan (default: from nominal inertias)")
    parser.add_argument("--prior", action="append", default=[], metavar="JOINT=K+-S", help="datasheet gain of a joint")
    parser.add_argument("--hold", action="append", default=[], metavar="JOINT=K", help="gain of a joint held fixed")
    parser.add_argument("--covariance", choices=("hac", "ar", "bootstrap", "white"), default="hac", help="default hac")
    group = parser.add_argument_group("friction (ml and tls; ls and lmi have one Coulomb-viscous friction, as published)")
    group.add_argument("--friction", default="sublinear", metavar="LAW", help="friction law (default sublinear)")
    group.add_argument("--common-friction", action="store_true", help="all runs share their friction (default: each its own)")
    group.add_argument("--load-friction", action="store_true", help="a gear loss in proportion to torque, per joint")
    group = parser.add_argument_group("logs")
    group.add_argument("--rows", metavar="A:B", help="rows to use of every log, from 1, both included (also LOG@A:B)")
    add_delay_option(group)
    group.add_argument("--cutoff", type=positive, metavar="HZ", help="low-pass cutoff (default: from the motion)")
    group.add_argument("--drop-bad-rows", action="store_true", help="read a log with corrupt rows and say what was dropped")
    add_common(parser)


def run(args):
    from bayesid.errors import DataError
    from bayesid.robots import load_robot

    show_warnings(args.quiet)
    args.effort = "current"
    robot = load_robot(args.robot)
    prior = _prior(args, robot)
    loads, carried = _loads(args)
    if not args.loaded and not args.plan:
        raise DataError("no loaded log: give --loaded LOG, or ask for --plan")
    progress = Progress(args.quiet)
    progress.stage("reading", "read")
    if args.plan:
        return _plan(args, robot, loads)
    logs, samples = read_samples([*args.unloaded, *args.loaded], args, robot)
    carried = (None,) * len(args.unloaded) + carried

    progress.stage("solving", "solve")
    found = {}
    for method in METHODS if args.compare else (args.method,):
        progress.stage(f"solving ({method})", "solve")
        try:
            found[method] = _estimate(args, robot, samples, carried, loads, prior, method)
        except DataError as error:
            if not args.compare or method == args.method:
                raise
            found[method] = str(error)
    progress.stage("gear losses", "solve")
    return _finish(args, robot, found, _constants(found[args.method], prior), data_part(logs, samples), progress, prior)


def _estimate(args, robot, samples, carried, loads, prior, method):
    """(runs, estimate) of one method with the friction that it takes."""
    from bayesid.gains import GainRuns, estimate_gains, gain_friction, with_load_friction
    from bayesid.models import Model
    from bayesid.regression import COVARIANCES

    published = method in ("ls", "lmi")
    law = "coulomb-offset" if published else args.friction
    shared = (0,) * len(samples) if published or args.common_friction else None
    runs = GainRuns(Model(robot, gain_friction(law)), tuple(samples), carried, loads, shared)
    if not published and args.load_friction:
        runs = with_load_friction(runs, prior if method == "ml" else None)
    return runs, estimate_gains(runs, method, prior=prior, covariance=COVARIANCES[args.covariance]())


def _constants(found, prior):
    """Motor constants by the method asked for, or why there are none."""
    from bayesid.errors import DataError, SolverError
    from bayesid.gains import motor_constants

    runs, estimate = found
    try:
        return motor_constants(estimate, runs, prior)
    except (DataError, SolverError) as error:
        return str(error)


def _finish(args, robot, found, constants, data, progress, prior):
    import numpy as np

    import bayesid
    from bayesid.gains import contradicted
    from bayesid.results import RESULT_SCHEMA, json_text, parameter_rows, write_folder

    runs, estimate = found[args.method]
    cautions = [] if prior is None else contradicted(estimate, prior)
    n = robot.dof
    noise = np.asarray(estimate.meta["current_noise"])
    document = {
        "bayesid": bayesid.__version__,
        "schema": RESULT_SCHEMA,
        "command": "drive-gains",
        "robot": robot.name,
        "method": args.method,
        "data": data,
        "base_dimension": runs.model.base.dimension,
        "parameters": parameter_rows(estimate),
        "covariance": estimate.covariance_method,
        "gains": {"covariance": estimate.covariance[:n, :n], "dof": estimate.dof},
        "fit": {"rms": noise, "unit": "A"},
        "undetermined": estimate.meta["undetermined"],
        "active_constraints": estimate.meta["active"],
        "warnings": cautions,
    }
    if isinstance(constants, str):
        document["motor_constants"] = {"refused": constants}
    else:
        losses = zip(parameter_rows(constants), constants.meta["load_friction"], constants.meta["load_friction_std"])
        document["motor_constants"] = [{**row, "load_friction": m, "load_friction_std": s} for row, m, s in losses]
    methods = {name: entry[1] for name, entry in found.items() if not isinstance(entry, str)}
    if args.compare:
        document["methods"] = {
            name: {"refused": entry}
            if isinstance(entry, str)
            else {"gains": parameter_rows(entry[1])[:n], "undetermined": entry[1].meta["undetermined"]}
            for name, entry in found.items()
        }
    if args.out:
        progress.stage("writing", "report")

        def fill(folder):
            from bayesid.gains.figures import current_figures, gain_figure, load_figure

            estimate.save(folder / "estimate.json")
            told = None if isinstance(constants, str) else constants
            gain_figure(methods, robot.joint_names, told).savefig(folder / "gains.png", dpi=120)
            load_figure(runs, estimate).savefig(folder / "load.png", dpi=120)
            for number, figure in enumerate(current_figures(runs, estimate), 1):
                figure.savefig(folder / f"current-{number}.png", dpi=120)
            document["timing_s"] = progress.done()
            (folder / "result.json").write_text(json_text(document), encoding="utf-8")

        write_folder(args.out, fill)
    else:
        document["timing_s"] = progress.done()
    if args.json:
        print(json_text(document))
        return 0
    print(_table(robot, found, constants))
    print()
    if isinstance(constants, str):
        print(f"motor constants: not told: {constants}")
    else:
        print(MOTOR)
    for caution in cautions:
        print(f"Warning: {caution}")
    for name in found if args.compare else ():
        print(f"{name}: {EXPLANATION[name]}")
    for name, entry in found.items():
        if isinstance(entry, str):
            print(f"{name}: refused: {entry}")
            continue
        for joint, words in entry[1].meta["undetermined"].items():
            print(f"note: {name}, {joint}: {words}")
    loads = [i for i, kind in enumerate(estimate.kinds) if kind == "payload"]
    masses = [i for i in loads if estimate.names[i].endswith(".m")]
    for i in masses:
        mass = estimate.mean[i]
        spread = f" +- {estimate.std[i]:.2g}" if estimate.std[i] > 0 else " (weighed)"
        com = ", ".join(f"{c:.3f}" for c in estimate.mean[i + 1 : i + 4] / mass)
        print(
            f"{estimate.names[i].removesuffix('.m')}: {mass:.4g} kg{spread}, centre of mass ({com}) m in {robot.link_names[-1]}"
        )
    print(f"covariance {estimate.covariance_method['method']}; current residual RMS {', '.join(f'{s:.3g}' for s in noise)} A")
    if args.out:
        print(f"wrote {args.out}: result.json, estimate.json, gains.png, load.png, current-*.png")
    return 0


def _table(robot, found, constants):
    rows = []
    for j, joint in enumerate(robot.joint_names):
        cells = []
        for entry in found.values():
            if isinstance(entry, str):
                cells.append("refused")
                continue
            estimate = entry[1]
            low, high = estimate.interval(0.95)[j]
            mark = " ?" if joint in estimate.meta["undetermined"] else ""
            cells.append("held" if estimate.std[j] == 0 else f"{estimate.mean[j]:.3f} [{low:.3f}, {high:.3f}]{mark}")
        if not isinstance(constants, str):
            low, high = constants.interval(0.95)[j]
            cells.append(f"[{low:.3f}, {high:.3f}]")
        rows.append((joint, *cells))
    constant = () if isinstance(constants, str) else ("motor's constant",)
    return table(("drive gain [N m/A]", *(f"{name}, 95 % interval" for name in found), *constant), rows)


def _plan(args, robot, loads):
    from bayesid.errors import DataError
    from bayesid.gains import Load, gain_friction, plan_gains
    from bayesid.models import Model
    from bayesid.results import json_text

    unused = {"--out": args.out, "--compare": args.compare, "--prior": args.prior, "--hold": args.hold}
    for option, given in unused.items():
        if given:
            raise DataError(f"{option} has no part in --plan, which estimates nothing: leave it out")
    if len(args.unloaded) > 1 or args.loaded or len(loads) > 1:
        raise DataError("--plan takes one unloaded log and one planned load")
    assumed = None if args.assume is None else _numbers(args.assume, "--assume")
    _, (run,) = read_samples(args.unloaded, args, robot)
    model = Model(robot, gain_friction(args.friction))
    com = _com(args)
    plan = plan_gains(model, run, Load(args.payload_mass[0], com), assumed)
    enough = [100 * width <= args.goal for width in plan.half_width]
    if args.json:
        joints = [
            {"joint": name, "assumed": k, "std": s, "half_width_percent": 100 * w, "added_torque_rms": t, "enough": e}
            for name, k, s, w, t, e in zip(robot.joint_names, plan.gains, plan.std, plan.half_width, plan.added_torque, enough)
        ]
        document = {"command": "drive-gains", "robot": robot.name, "payload_kg": args.payload_mass[0]}
        print(json_text({**document, "goal_percent": args.goal, "plan": joints}))
        return 0 if all(enough) else 1
    rows = [
        (name, f"{k:.3g}", f"{t:.3g}", f"{100 * w:.2g} %", "yes" if e else "no: heavier, further out, or a longer motion")
        for name, k, w, t, e in zip(robot.joint_names, plan.gains, plan.half_width, plan.added_torque, enough)
    ]
    print(table(("joint", "assumed N m/A", "load adds N m RMS", "95 % half width", f"within {args.goal:g} %"), rows))
    return 0 if all(enough) else 1


def _loads(args):
    """Loads (one per distinct mass) and which of them each loaded log carries."""
    from bayesid.errors import DataError
    from bayesid.gains import Load

    masses = args.payload_mass
    if len(masses) not in (1, max(len(args.loaded), 1)):
        raise DataError(f"{len(masses)} masses for {len(args.loaded)} loaded logs: give one, or one per log")
    for mass in masses:
        Load(mass)
    if len(masses) == 1:
        masses = masses * max(len(args.loaded), 1)
    com = _com(args)
    distinct = sorted(set(masses))
    if com is not None and len(distinct) > 1:
        raise DataError("--payload-com goes with one load")
    return tuple(Load(mass, com) for mass in distinct), tuple(distinct.index(mass) for mass in masses)


def _com(args):
    from bayesid.errors import DataError

    if args.payload_com is None:
        return None
    values = _numbers(args.payload_com, "--payload-com")
    if len(values) != 3:
        raise DataError(f"--payload-com {args.payload_com}: not three comma-separated numbers")
    return tuple(values)


def _prior(args, robot):
    """Gaussian knowledge of gains from --prior and --hold, None when there is none."""
    import numpy as np

    from bayesid.errors import DataError
    from bayesid.gains import Gains

    if not args.prior and not args.hold:
        return None
    mean, variance = np.full(robot.dof, np.nan), np.full(robot.dof, np.inf)
    for option, entries in (("--prior", args.prior), ("--hold", args.hold)):
        for entry in entries:
            name, _, value = entry.replace("±", "+-").partition("=")
            value, sign, spread = value.partition("+-")
            if name not in robot.joint_names:
                raise DataError(f"{option} {entry}: no joint '{name}'; the robot has {', '.join(robot.joint_names)}")
            try:
                k, s = float(value), float(spread) if sign or option == "--prior" else 0.0
            except ValueError:
                form = "JOINT=K+-S" if option == "--prior" else "JOINT=K"
                raise DataError(f"{option} {entry}: write it as {form}") from None
            if option == "--hold" and sign:
                raise DataError(f"--hold {entry}: a gain that is held is exact; give one with a spread as --prior {entry}")
            if option == "--prior" and not 0 < s < np.inf:
                raise DataError(f"{option} {entry}: the standard deviation must be positive; --hold fixes a gain")
            if not 1e-6 < k < 1e6:
                raise DataError(f"{option} {entry}: drive gains must be positive numbers, from 1e-6 to 1e6 N m/A")
            j = robot.joint_names.index(name)
            if np.isfinite(mean[j]):
                raise DataError(f"{option} {entry}: joint {name} has a gain from another --prior or --hold; give one")
            mean[j], variance[j] = k, s**2
    return Gains(mean, np.diag(variance))


def _numbers(text, option):
    from bayesid.errors import DataError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise DataError(f"{option} {text}: not comma-separated numbers") from None
