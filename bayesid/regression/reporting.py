"""The result document, the words and the report of an identification."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import bayesid
from bayesid.regression.checks import fit_warnings, held_out_warnings
from bayesid.report.document import NRMSE, interval_text
from bayesid.report.figures import parameter_figure, residual_figure, torque_figure
from bayesid.report.page import figure_section, html_page, png, table_section, text_section
from bayesid.results import RESULT_SCHEMA, parameter_rows


def identification_document(found, data, timing) -> dict:
    """`result.json` of an `Identification`; `data` and `timing` are its parts of those names."""
    base, estimate = found.base, found.estimate
    rows = parameter_rows(base)
    if estimate is not base:
        known = {row["name"] for row in rows}
        rows += [row for row in parameter_rows(estimate) if row["name"] not in known]
    count = np.array([len(v.measured) for v in found.training], dtype=float)
    document = {
        "bayesid": bayesid.__version__,
        "schema": RESULT_SCHEMA,
        "command": "identify",
        "robot": found.model.robot.name,
        "joints": list(found.model.robot.joint_names),
        "joint_kinds": [joint.kind for joint in found.model.robot.joints],
        "friction": found.model.friction.name,
        **({"load_reference": base.meta["load_reference"]} if "load_reference" in base.meta else {}),
        "method": estimate.method,
        "data": data,
        "base_dimension": found.model.base.dimension,
        "condition_number": found.condition_number,
        "parameters": rows,
        "base_parameters": base.meta["expressions"],
        "unidentifiable": list(found.model.base.unidentifiable()),
        "covariance": base.covariance_method,
        "fit": {
            "rms": np.sqrt(np.average([v.rms**2 for v in found.training], axis=0, weights=count)),
            "nrmse": np.average([v.nrmse for v in found.training], axis=0, weights=count),
            "coverage95": np.average([v.coverage95 for v in found.training], axis=0, weights=count),
        },
        "validation": [v.to_dict() for v in found.validation],
        "warnings": [
            *fit_warnings(found),
            *held_out_warnings(base.meta["trained_on"], [v.source for v in found.validation]),
        ],
        "timing_s": timing,
    }
    if found.min_eigenvalue is not None:
        document["physical"] = {
            "consistent": bool(np.all(found.min_eigenvalue > 0)),
            "min_eigenvalue": found.min_eigenvalue,
            "active": list(found.active),
        }
    return document


def identification_files(found, document, folder) -> None:
    """Write figures and report.html of an identification into a folder."""
    robot = found.model.robot
    runs = [("training", v) for v in found.training[:1]] + [("held out", v) for v in found.validation]
    sections = [
        text_section("In short", summary_lines(document)),
        table_section("Prediction of unfiltered torque", *fit_table(document), f"{NRMSE}."),
    ]
    for number, (role, run) in enumerate(runs):
        label = f"{role}: {Path(run.source.get('path') or 'run').name}"
        torque = png(torque_figure(run.time, run.measured, run.prediction, robot.joint_names, title=label))
        residual = png(residual_figure(run.time, run.measured - run.prediction.mean, robot.joint_names, title=label))
        (folder / f"torque_{number}.png").write_bytes(torque)
        (folder / f"residual_{number}.png").write_bytes(residual)
        sections += [
            figure_section(f"Torque, {label}", torque, "The band holds one new measurement with 95 % probability."),
            figure_section(
                f"Residual, {label}",
                residual,
                "Residuals of a good fit on a real robot are autocorrelated: model error, not noise. The default covariance "
                "accounts for that. Spikes at reversals are friction, drift is temperature, a lag is delay.",
            ),
        ]
    picture = png(parameter_figure(found.base, title="Base parameters with 95 % intervals"))
    (folder / "parameters.png").write_bytes(picture)
    sections.append(figure_section("Base parameters", picture))
    sections.append(
        table_section(
            "All parameters",
            ("parameter", "estimate", "std", "95 % interval", "unit"),
            [
                (
                    row["name"],
                    f"{row['estimate']:.5g}",
                    f"{row['std']:.2g}",
                    interval_text(row),
                    row["unit"],
                )
                for row in document["parameters"]
            ],
        )
    )
    sections.append(
        table_section("What the base parameters are", ("name", "combination"), list(document["base_parameters"].items()))
    )
    sections.append(text_section("What joint torques cannot tell", document["unidentifiable"]))
    sections.append(
        table_section(
            "Data",
            ("file", "SHA-256", "samples", "duration [s]", "steps"),
            [
                (d["path"], d["sha256"][:12], d["samples"], f"{d['duration_s']:.1f}", ", ".join(s["name"] for s in d["steps"]))
                for d in document["data"]
            ],
        )
    )
    lead = f"bayesid {document['bayesid']} identify, method {document['method']}, friction {document['friction']}."
    (folder / "report.html").write_text(html_page(f"Identification of {document['robot']}", lead, sections), encoding="utf-8")


def fit_table(document):
    """Head and rows of the table of RMS, NRMSE and coverage per joint, for training and held-out runs."""
    head = ("joint", rms_head([kind != "prismatic" for kind in document["joint_kinds"]]), "nrmse", "in 95 % band")
    extra = []
    for i, run in enumerate(document["validation"]):
        head += (f"held-out {i + 1}: rms", "nrmse", "in band")
        extra.append(run)
    rows = []
    for j, joint in enumerate(document["joints"]):
        row = [joint]
        for part in (document["fit"], *extra):
            row += [f"{part['rms'][j]:.3g}", f"{part['nrmse'][j]:.1%}", f"{part['coverage95'][j]:.1%}"]
        rows.append(row)
    return head, rows


def rms_head(revolute) -> str:
    """The head of a column of RMS errors: their unit follows the joints (N m of revolute, N of prismatic ones)."""
    if all(revolute):
        return "rms [N m]"
    return "rms [N m, N]" if any(revolute) else "rms [N]"


def summary_lines(document) -> list[str]:
    """What a reader should know first, a sentence a line."""
    covariance = document["covariance"]
    lags = f" with {covariance['lags']} lags" if "lags" in covariance else ""
    lines = [
        f"{document['base_dimension']} base parameters of {document['robot']} from "
        f"{sum(d['samples'] for d in document['data'])} samples; condition number {document['condition_number']:.1f}.",
        f"Uncertainty: {covariance['method']} covariance{lags}.",
    ]
    lines += [f"Warning: {text}" for text in document["warnings"]]
    if covariance["method"] == "white":
        lines.append("Warning: white-noise intervals ignore autocorrelation and are too narrow on real robots.")
    if not document["validation"]:
        lines.append("No held-out log: how well this predicts other motions is not known (give one with --validate).")
    physical = document.get("physical")
    if physical:
        lines.append(
            "All links physically consistent."
            if physical["consistent"]
            else "NOT physically consistent: some link's pseudo-inertia is not positive definite."
        )
        if physical["active"]:
            lines.append(f"Constraints that hold with equality: {', '.join(physical['active'])}.")
    return lines
