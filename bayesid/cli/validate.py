"""bayesid validate: judge a result on further logs."""

from __future__ import annotations

from bayesid.cli.options import (
    Progress,
    add_common,
    add_log_options,
    check_gains_used,
    gains_part,
    positive,
    probability,
    read_gains,
    read_samples,
    show_warnings,
    table,
)


def add_arguments(parser):
    parser.add_argument("result", metavar="RESULT", help="result folder, or its estimate.json")
    parser.add_argument("logs", nargs="+", metavar="LOG", help="log that the result was not fitted to")
    add_log_options(parser, robot=False)
    group = parser.add_argument_group("goals")
    group.add_argument("--max-nrmse", type=positive, metavar="X", help="exit 1 when a joint's NRMSE is above X")
    group.add_argument(
        "--min-coverage", type=probability, metavar="P", help="exit 1 when a joint's 95 %% band covers less than P"
    )
    add_common(parser)


def run(args):
    from pathlib import Path

    import bayesid
    from bayesid.errors import ResultError
    from bayesid.regression.reporting import rms_head
    from bayesid.report import html_page, residual_figure, table_section, text_section, torque_figure
    from bayesid.report.document import NRMSE
    from bayesid.report.page import figure_section, png
    from bayesid.results import RESULT_SCHEMA, Estimate, json_text, write_folder

    show_warnings(args.quiet)
    progress = Progress(args.quiet)
    progress.stage("reading", "read")
    path = Path(args.result)
    estimate = Estimate.load(path)
    model = getattr(estimate.predictor, "model", None)
    if model is None:
        raise ResultError(f"{args.result}: this estimate predicts no torque, so there is nothing to validate")
    if args.schema is None:
        raise ResultError("name the schema of the logs with --schema")
    _, runs = read_samples(args.logs, args, model.robot)
    gains, gain_covariance = read_gains(args.drive_gains, model.robot)
    spread = None
    if gains is not None:
        import dataclasses

        import numpy as np

        check_gains_used(gains, runs)
        # The model's own gains are in its parameters: their error is common to both sides and cancels.
        own = getattr(estimate.predictor, "gains", None)
        if gain_covariance is not None and not (own is not None and np.allclose(own, gains, rtol=1e-9)):
            spread = np.sqrt(np.diag(gain_covariance)) / gains
        estimate = dataclasses.replace(estimate, predictor=dataclasses.replace(estimate.predictor, gains=gains))
    progress.stage("predicting", "solve")
    from bayesid.regression import validate
    from bayesid.regression.checks import check_runs, held_out_warnings

    for samples in runs:
        check_runs(model, [samples])
    cautions = held_out_warnings(estimate.meta.get("trained_on", ()), [samples.source for samples in runs])
    found = [validate(estimate, samples, spread if samples.effort_kind == "current" else None) for samples in runs]
    joints = model.robot.joint_names
    document = {
        "bayesid": bayesid.__version__,
        "schema": RESULT_SCHEMA,
        "command": "validate",
        "robot": model.robot.name,
        "joints": list(joints),
        "result": str(args.result),
        "drive_gains": gains_part(args.drive_gains, gains, gain_covariance),
        "validation": [v.to_dict() for v in found],
        "warnings": cautions,
        "timing_s": progress.done(),
    }
    head = ("joint", rms_head(model.robot.revolute), "nrmse", "R2", "in band", "moving", "still")
    tables = [(v.source.get("path") or "run", [_row(v, j, joint) for j, joint in enumerate(joints)]) for v in found]
    if args.out:

        def fill(folder):
            sections = [text_section("Warnings", cautions)] if cautions else []
            for (name, rows), v in zip(tables, found, strict=True):
                sections += [
                    table_section(f"Prediction of {Path(name).name}", head, rows),
                    figure_section("Torque", png(torque_figure(v.time, v.measured, v.prediction, joints, title=name))),
                    figure_section(
                        "Residual", png(residual_figure(v.time, v.measured - v.prediction.mean, joints, title=name))
                    ),
                ]
            page = html_page(f"Validation of {args.result}", f"Robot {model.robot.name}.", sections)
            (folder / "report.html").write_text(page, encoding="utf-8")
            (folder / "result.json").write_text(json_text(document), encoding="utf-8")

        write_folder(args.out, fill)
    if args.json:
        print(json_text(document))
    else:
        for caution in cautions:
            print(f"Warning: {caution}")
        for name, rows in tables:
            print(f"{Path(name).name}\n{table(head, rows)}\n")
        print(NRMSE)
    missed = any(
        (args.max_nrmse is not None and not (v.nrmse <= args.max_nrmse).all())
        or (args.min_coverage is not None and not (v.coverage95 >= args.min_coverage).all())
        for v in found
    )
    return 1 if missed else 0


def _row(v, j, joint):
    return (
        joint,
        f"{v.rms[j]:.3g}",
        f"{v.nrmse[j]:.1%}",
        f"{v.r2[j]:.4f}",
        f"{v.coverage95[j]:.1%}",
        f"{v.coverage95_moving[j]:.1%}",
        f"{v.coverage95_still[j]:.1%}" if v.coverage95_still[j] == v.coverage95_still[j] else "-",
    )
