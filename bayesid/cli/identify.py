"""bayesid identify: the main job."""

from __future__ import annotations

from bayesid.cli.options import (
    COVARIANCES,
    LAWS,
    METHODS,
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
    whole,
)

EPILOG = """example:
  bayesid identify run.csv --robot ur10e --schema my_schema.toml --validate other.csv --out result"""


def add_arguments(parser):
    parser.epilog = EPILOG
    parser.add_argument("logs", nargs="+", metavar="LOG", help="log file, with its window if wanted: run.csv@635:3510")
    add_log_options(parser)
    group = parser.add_argument_group("estimation")
    group.add_argument(
        "--validate", action="append", default=[], metavar="LOG", help="held-out log to judge the result on (may be repeated)"
    )
    group.add_argument(
        "--method", choices=METHODS, default="lmi", help="lmi (default): physically consistent; others: base parameters"
    )
    group.add_argument(
        "--covariance", choices=COVARIANCES, default="hac", help="of the residuals; hac (default) allows for autocorrelation"
    )
    group.add_argument("--friction", default="coulomb-offset", metavar="LAW", help=f"one of {LAWS} (default coulomb-offset)")
    group.add_argument("--no-rotor", action="store_true", help="leave rotor inertias out: they count as part of the links")
    group.add_argument(
        "--mass-bounds",
        action="append",
        default=[],
        metavar="LINK=LOW:HIGH",
        help="bounds on a link's mass [kg] (may be repeated)",
    )
    group.add_argument("--total-mass", metavar="LOW:HIGH", help="bounds on the mass in motion [kg]")
    group.add_argument(
        "--pull", type=float, default=0.0, metavar="W", help="weight of the entropic pull to the nominal inertials (default 0)"
    )
    group.add_argument(
        "--draws", type=whole, default=200, metavar="N", help="bootstrap draws of method lmi, at least 20 (default 200)"
    )
    group.add_argument(
        "--max-nrmse", type=positive, metavar="X", help="exit 1 when a joint's NRMSE on a held-out log is above X"
    )
    add_common(parser)


def run(args):
    from bayesid.errors import DataError

    show_warnings(args.quiet)
    if args.draws < 20:
        raise DataError(f"--draws {args.draws}: intervals need at least 20 bootstrap draws")
    if args.max_nrmse is not None and not args.validate:
        raise DataError("--max-nrmse judges held-out logs: give one with --validate")
    constraints = _constraints(args)
    progress = Progress(args.quiet)
    progress.stage("reading", "read")
    from bayesid.robots import load_robot

    robot = load_robot(args.robot)
    gains, gain_covariance = read_gains(args.drive_gains, robot)
    logs, runs = read_samples(args.logs, args, robot)
    _, held_out = read_samples(args.validate, args, robot)

    check_gains_used(gains, [*runs, *held_out])

    progress.stage("compiling", "compile")
    from bayesid.models import Model
    from bayesid.regression import COVARIANCES, Bootstrap, identify

    model = Model(robot, args.friction, rotor=not args.no_rotor)
    _ = model.base

    progress.stage("solving", "solve")
    found = identify(
        model,
        runs,
        gains=gains,
        gain_covariance=gain_covariance,
        method=args.method,
        covariance=Bootstrap(seed=args.seed) if args.covariance == "bootstrap" else COVARIANCES[args.covariance](),
        constraints=constraints,
        validation=held_out,
        draws=args.draws,
        seed=args.seed,
    )
    gains_used = {"drive_gains": gains_part(args.drive_gains, gains, gain_covariance)}
    return finish(args, found, data_part(logs, runs), progress, gains_used)


def finish(args, found, data, progress, extra=None):
    """Print and write an identification; the exit status."""
    from bayesid.regression.reporting import fit_table, identification_document, identification_files, summary_lines
    from bayesid.report.document import NRMSE
    from bayesid.results import json_text, write_folder

    document = {**identification_document(found, data, {}), **(extra or {})}
    if args.out:
        progress.stage("writing the report", "report")

        def fill(folder):
            identification_files(found, document, folder)
            _write_robot(args, found, folder)
            found.estimate.save(folder / "estimate.json")
            found.base.save(folder / "base.json")
            document["timing_s"] = progress.done()
            (folder / "result.json").write_text(json_text(document), encoding="utf-8")

        write_folder(args.out, fill)
    else:
        document["timing_s"] = progress.done()
    if args.json:
        print(json_text(document))
    else:
        print("\n".join(summary_lines(document)))
        print()
        print(table(*fit_table(document)))
        print(NRMSE)
        if args.out:
            urdf = ", identified.urdf" if found.min_eigenvalue is not None else ""
            print(f"\nwrote {args.out}: result.json, estimate.json, report.html{urdf}")
            if urdf:
                print(_friction_line(found.model.friction))
    limit = getattr(args, "max_nrmse", None)
    missed = limit is not None and any(not v <= limit for run in document["validation"] for v in run["nrmse"])
    return 1 if missed else 0


def _write_robot(args, found, folder):
    """The identified robot as URDF, in the user's own file's form where there is one; refused when not consistent."""
    from pathlib import Path

    from bayesid.robots import update_urdf, urdf_text

    if found.min_eigenvalue is None:
        return
    robot = found.robot()
    source = Path(getattr(args, "robot", ""))
    text = update_urdf(source, robot) if source.suffix == ".urdf" else urdf_text(robot)
    (folder / "identified.urdf").write_text(text, encoding="utf-8")


def _friction_line(law):
    """What identified.urdf holds of a friction law."""
    more = [name for name in law.parameters if name not in ("viscous", "coulomb")]
    if not more:
        return "identified.urdf holds links, rotors and friction."
    if more == ["offset"]:
        return "identified.urdf holds links, rotors, viscous and Coulomb friction; URDF has no place for the law's offset."
    return (
        "identified.urdf holds links, rotors, and the viscous and Coulomb friction nearest to the law in the logs' motion; "
        f"URDF has no place for its {', '.join(more)}."
    )


def _constraints(args):
    from bayesid.errors import DataError
    from bayesid.regression.physical import Constraints

    if args.method != "lmi" and (args.mass_bounds or args.total_mass or args.pull):
        raise DataError(f"--mass-bounds, --total-mass and --pull act on method lmi only, not on {args.method}")
    if not 0 <= args.pull < float("inf"):
        raise DataError(f"--pull {args.pull}: must be a number from 0 on")

    def bounds(text, given):
        low, _, high = text.partition(":")
        try:
            return float(low), float(high)
        except ValueError:
            raise DataError(f"{given}: not LOW:HIGH in kg") from None

    masses = []
    for text in args.mass_bounds:
        link, equals, rest = text.partition("=")
        if not equals:
            raise DataError(f"--mass-bounds {text}: not LINK=LOW:HIGH in kg")
        masses.append((link, *bounds(rest, f"--mass-bounds {text}")))
    total = bounds(args.total_mass, f"--total-mass {args.total_mass}") if args.total_mass else None
    return Constraints(tuple(masses), total, args.pull)
