"""bayesid posterior: a full posterior of link, rotor and friction parameters."""

from __future__ import annotations

from bayesid.cli.options import (
    LAWS,
    Progress,
    add_common,
    add_log_options,
    at_least,
    check_gains_used,
    data_part,
    gains_part,
    positive,
    read_gains,
    read_samples,
    show_warnings,
    table,
    whole,
)

LIKELIHOODS = ("calibrated", "robust", "autoregressive", "white")
PRIORS = ("wishart", "log-cholesky")
METHODS = ("nuts", "laplace", "svi")


def add_arguments(parser):
    parser.add_argument("logs", nargs="+", metavar="LOG", help="log file, with its window if wanted: run.csv@635:3510")
    add_log_options(parser)
    group = parser.add_argument_group("model and prior")
    group.add_argument(
        "--friction", default="coulomb-offset", metavar="LAW", help=f"auto: the law that predicts best; or one of {LAWS}"
    )
    group.add_argument(
        "--breakaway-speed",
        type=positive,
        metavar="V",
        help="hold the breakaway speed of law stribeck at V rad/s (default: infer that of each joint)",
    )
    group.add_argument("--no-rotor", action="store_true", help="no rotor inertias: they are part of the links")
    group.add_argument("--prior", choices=PRIORS, default="wishart", help="of link inertials (default wishart)")
    group.add_argument(
        "--prior-dof", type=float, metavar="D", help="wishart: how many points of each body the CAD is worth (default 12)"
    )
    group.add_argument(
        "--prior-spread",
        metavar="M,S,O",
        help="log-cholesky: standard deviations of log mass, of log size, and of the centre of mass over the radius of "
        "gyration (default 0.3,0.15,0.2)",
    )
    group.add_argument("--prior-robot", metavar="R", help="robot whose inertials centre the prior (default: --robot)")
    group.add_argument("--total-mass", type=float, metavar="KG", help="no CAD: bodies of plausible size with this mass")
    group.add_argument("--keep-conflicts", action="store_true", help="do not soften the prior of links that contradict it")
    group.add_argument(
        "--likelihood", choices=LIKELIHOODS, default="calibrated", help="what is assumed of residuals (default calibrated)"
    )
    group = parser.add_argument_group("inference")
    group.add_argument("--method", choices=METHODS, default="nuts", help="default nuts; laplace and svi are approximations")
    group.add_argument("--chains", type=at_least(1), default=4, metavar="N")
    group.add_argument("--warmup", type=whole, default=200, metavar="N")
    group.add_argument("--draws", type=at_least(1), default=1000, metavar="N", help="draws per chain (default 1000)")
    group.add_argument("--target-accept", type=float, metavar="P", help="default: what suits the prior")
    group.add_argument("--validate", action="append", default=[], metavar="LOG", help="held-out log (may be repeated)")
    group.add_argument(
        "--export-samples", type=at_least(1), metavar="N", help="write N robot descriptions drawn from the posterior"
    )
    group.add_argument("--export-format", choices=("urdf", "mjcf"), default="urdf")
    add_common(parser)


def run(args):
    from bayesid.errors import DataError

    show_warnings(args.quiet)
    if args.export_samples and not args.out:
        raise DataError("--export-samples writes files: name a folder with --out")
    if args.chains * args.draws < 20:
        raise DataError(f"--chains {args.chains} --draws {args.draws}: intervals need at least 20 draws")
    progress = Progress(args.quiet)
    progress.stage("reading", "read")
    from bayesid.dynamics import friction_law
    from bayesid.robots import load_robot

    robot = load_robot(args.robot)
    if args.friction != "auto":
        friction_law(args.friction)
    gains, gain_covariance = read_gains(args.drive_gains, robot)
    logs, runs = read_samples(args.logs, args, robot)
    _, held_out = read_samples(args.validate, args, robot)
    check_gains_used(gains, [*runs, *held_out])

    from bayesid.dynamics import stribeck_law
    from bayesid.models import Model
    from bayesid.posterior import NUTS, SVI, BreakawayPrior, Laplace, LogCholesky, infer
    from bayesid.regression.checks import check_held_out

    if args.breakaway_speed is not None and args.friction != "stribeck":
        raise DataError(f"--breakaway-speed belongs to friction law stribeck, not to {args.friction}")
    prior = _prior(args, robot)
    comparison = None
    friction = args.friction
    if friction == "auto":
        progress.stage("comparing friction laws", "friction")
        from bayesid.posterior.friction import candidates, compare_friction, ladder

        laws = candidates(ladder(runs))
        comparison = compare_friction(robot, runs, gains=gains, laws=laws, prior=prior, rotor=not args.no_rotor)
        friction = comparison.chosen
    progress.stage("compressing", "compile")
    breakaway = BreakawayPrior() if friction == "stribeck" and args.breakaway_speed is None else None
    if args.breakaway_speed is not None:
        friction = stribeck_law(args.breakaway_speed)
    elif breakaway and comparison is not None and (args.likelihood != "calibrated" or isinstance(prior, LogCholesky)):
        # Speeds are inferred with none of these: those of the comparison are held.
        friction, breakaway = stribeck_law(comparison.breakaway_speeds()), None
    model = Model(robot, friction, rotor=not args.no_rotor)
    _ = model.base
    prior.of(model)
    if held_out:
        check_held_out(model, held_out, gains)
    method = {
        "nuts": lambda: NUTS(args.chains, args.warmup, args.draws, args.target_accept, seed=args.seed),
        "laplace": lambda: Laplace(args.chains * args.draws, args.seed),
        "svi": lambda: SVI(draws=args.chains * args.draws, seed=args.seed),
    }[args.method]()
    progress.stage("sampling", "solve")
    found = infer(
        model,
        runs,
        gains=gains,
        gain_covariance=gain_covariance,
        prior=prior,
        likelihood=args.likelihood,
        method=method,
        softened=not args.keep_conflicts,
        breakaway=breakaway,
    )
    document = _document(args, found, data_part(logs, runs), held_out, comparison)
    document["drive_gains"] = gains_part(args.drive_gains, gains, gain_covariance)
    if args.out:
        progress.stage("writing", "write")
        _write(args, found, document, progress)
    document["timing_s"] = progress.done()
    _show(args, document, comparison)
    return 1 if document["problems"] else 0


def _prior(args, robot):
    from bayesid.errors import DataError
    from bayesid.posterior import ClassPrior, FromRobot, LogCholesky, Wishart
    from bayesid.posterior.prior import typical_inertials
    from bayesid.robots import load_robot

    if args.prior_robot and args.total_mass is not None:
        raise DataError("--total-mass is for robots without CAD, --prior-robot names the CAD: give one of them")
    about = load_robot(args.prior_robot) if args.prior_robot else None
    if args.prior == "log-cholesky":
        if args.prior_dof is not None:
            raise DataError("--prior-dof belongs to --prior wishart: say how far to trust the CAD with --prior-spread")
        if args.total_mass is not None:
            about = robot.with_inertials(typical_inertials(robot, args.total_mass))
        return LogCholesky(*_spreads(args.prior_spread), robot=about)
    if args.prior_spread is not None:
        raise DataError("--prior-spread belongs to --prior log-cholesky: say how far to trust the CAD with --prior-dof")
    if args.total_mass is not None:
        return ClassPrior(args.total_mass, 6.0 if args.prior_dof is None else args.prior_dof)
    dof = 12.0 if args.prior_dof is None else args.prior_dof
    return FromRobot(about, dof) if about else Wishart(dof)


def _spreads(text):
    from bayesid.errors import DataError

    if text is None:
        return ()
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 3:
        raise DataError(f"--prior-spread {text}: give three numbers, of log mass, log size and offset, such as 0.3,0.15,0.2")
    return values


def _document(args, found, data, held_out, comparison):
    import numpy as np

    import bayesid
    from bayesid.posterior import coverage
    from bayesid.regression import validate
    from bayesid.regression.checks import delay_warnings, held_out_warnings, nominal_warnings, poor_fit
    from bayesid.results import RESULT_SCHEMA, parameter_rows

    estimate = found.estimate()
    smallest = found.min_eigenvalues()
    problems = list(found.diagnostics.problems) if found.diagnostics else []
    contraction = found.contraction()
    rows = [{**row, "contraction": float(c)} for row, c in zip(parameter_rows(estimate), contraction)]
    training = [validate(estimate, run) for run in found.observations.runs]
    cautions = poor_fit(found.model.robot.joint_names, [v.nrmse for v in training])
    rms = np.sqrt(np.mean([v.rms**2 for v in training], axis=0))
    cautions += nominal_warnings(found.base_estimate(), found.model, found.observations.runs, rms)
    cautions += delay_warnings(found.model, found.observations.runs)
    cautions += held_out_warnings(found.meta["trained_on"], [run.source for run in held_out])
    strained = found.target.prior.strained(estimate.mean) if args.prior == "log-cholesky" else []
    if strained:
        cautions.append(
            f"The prior contradicts the data on {', '.join(strained)} and pulls what depends on them: state rotor inertia, "
            "friction and the torque limits in the robot file, or use --prior wishart."
        )
    base = [{**row, "kind": "base", "name": f"base.{row['name']}"} for row in parameter_rows(found.base_estimate())]
    document = {
        "bayesid": bayesid.__version__,
        "schema": RESULT_SCHEMA,
        "command": "posterior",
        "robot": found.model.robot.name,
        "joints": list(found.model.robot.joint_names),
        "friction": found.model.friction.name,
        **({"load_reference": found.meta["load_reference"]} if "load_reference" in found.meta else {}),
        "method": args.method,
        "data": data,
        "base_dimension": found.model.base.dimension,
        "parameters": rows + base,
        "correlated": [list(group) for group in found.correlated_groups()],
        "covariance": found.target.likelihood.description,
        "prior": {**found.target.prior.description, "conflicts": [str(c) for c in found.conflicts]},
        "effective_samples": found.target.likelihood.effective,
        "validation": [],
        "physical": {"consistent": bool(np.all(smallest > 0)), "min_eigenvalue": smallest.min(axis=0)},
        "diagnostics": found.diagnostics.to_dict() if found.diagnostics else None,
        "problems": problems,
        "warnings": cautions,
    }
    for run in held_out:
        shares = coverage(estimate, run, 0.9)
        part = {"coverage90_moving": shares["moving"], "coverage90_still": shares["standstill"]}
        document["validation"].append({**validate(estimate, run).to_dict(), **part})
    if comparison is not None:
        document["friction_comparison"] = {
            "laws": list(comparison.names),
            "elpd": comparison.elpd,
            "difference": comparison.difference,
            "standard_error": comparison.error,
            "best": list(comparison.best),
            "breakaway_speeds": comparison.speeds,
            "chosen": comparison.chosen,
            "reason": comparison.reason,
        }
    return document


def _write(args, found, document, progress):
    from bayesid.results import json_text, write_folder

    def fill(folder):
        found.estimate().save(folder / "estimate.json")
        found.save_netcdf(folder / "posterior.nc")
        if args.export_samples:
            found.export_samples(folder / "robots", args.export_samples, args.export_format, args.seed)
        document["timing_s"] = progress.done()
        (folder / "result.json").write_text(json_text(document), encoding="utf-8")

    write_folder(args.out, fill)


def _show(args, document, comparison):
    from pathlib import Path

    from bayesid.report.document import COMPARISON, FROM_DATA, NRMSE, diagnostics_text, held_out_table, interval_text, share
    from bayesid.results import json_text

    if args.json:
        print(json_text(document))
        return
    for caution in document["warnings"]:
        print(f"Warning: {caution}")
    if comparison is not None:
        print(table(*comparison.table()))
        print(COMPARISON)
        print(f"friction law: {comparison.reason}\n")
    rows = [
        (
            row["name"],
            row["unit"],
            f"{row['estimate']:.4g}",
            f"{row['std']:.2g}",
            interval_text(row),
            share(row["contraction"], 0),
        )
        for row in document["parameters"]
        if "contraction" in row
    ]
    print(table(("parameter", "unit", "mean", "std", "95 % interval", "from data"), rows))
    print(FROM_DATA)
    for held in document["validation"]:
        print(f"\nheld out: {Path(held.get('path') or 'run').name}")
        print(table(*held_out_table(document["joints"], held)))
    if document["validation"]:
        print(NRMSE)
    for conflict in document["prior"]["conflicts"]:
        print(f"\nnote: {conflict}")
    if document["diagnostics"]:
        print(f"\n{diagnostics_text(document['diagnostics'])}, {document['timing_s']['total']:.1f} s")
    for problem in document["problems"]:
        print(f"problem: {problem}")
    if args.out:
        robots = f", robots/ ({args.export_samples} {args.export_format} files)" if args.export_samples else ""
        print(f"\nwrote {args.out}: result.json, estimate.json, posterior.nc{robots}")
