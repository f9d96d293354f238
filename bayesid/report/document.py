"""A page about any result document: parameters with intervals, fit, data; no samples needed."""

from __future__ import annotations

import json
from pathlib import Path

from bayesid.report.figures import parameter_figure
from bayesid.report.page import figure_section, html_page, png, table_section, text_section

FROM_DATA = "from data: share of the prior's variance that the data removed; negative: wider than the prior"
NRMSE = "nrmse: rms over the standard deviation of the measured torque"
COMPARISON = "difference in expected log predictive density [nats] from the best law of each joint (standard error)"
_SHOWN = {"parameters", "data", "bayesid", "schema", "command", "robot", "joints"}


def document_page(document: dict, estimate=None) -> str:
    """HTML text of a result document; `estimate`, if there is one, adds the figure of its intervals."""
    sections, shown = [], set(_SHOWN)
    if document["command"] == "posterior":
        sections += _posterior_sections(document)
        shown |= {"validation", "diagnostics", "problems", "warnings", "friction_comparison"}
    if "parameters" in document:
        contracted = any("contraction" in row for row in document["parameters"])
        rows = [
            (
                row["name"],
                _number(row["estimate"], 5),
                _number(row["std"], 2),
                interval_text(row),
                row["unit"],
                *((share(row.get("contraction"), 0),) if contracted else ()),
            )
            for row in document["parameters"]
        ]
        head = ("parameter", "estimate", "std", "95 % interval", "unit", *(("from data",) if contracted else ()))
        sections.append(table_section("Parameters", head, rows, f"{FROM_DATA}." if contracted else ""))
    if estimate is not None:
        missing = set(estimate.names) - {row["name"] for row in document.get("parameters", [])}
        if missing:
            raise ValueError(f"its estimate.json is of another result: '{min(missing)}' is not in result.json")
        sections.append(figure_section("Intervals", png(parameter_figure(estimate))))
    for part in document.get("data", []):
        steps = ", ".join(step["name"] for step in part.get("steps", []))
        sections.append(text_section(f"Data: {part.get('path')}", [f"SHA-256 {part.get('sha256')}", f"steps: {steps}"]))
    for key, value in document.items():
        if key not in shown:
            sections.append(text_section(key.replace("_", " "), [json.dumps(value, ensure_ascii=False)]))
    lead = f"bayesid {document['bayesid']} {document['command']}"
    return html_page(f"{document['command']}: {document.get('robot', '')}", lead, sections)


def held_out_table(joints, part: dict) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows of how a posterior predicts one held-out run: rms and share of its 90 % band, joint by joint."""
    head = ("joint", "rms [N m]", "nrmse", "in 90 % band, moving", "standing")
    columns = (part["rms"], part["nrmse"], part["coverage90_moving"], part["coverage90_still"])
    return head, [
        (joint, _number(rms, 3), share(nrmse), share(moving, 0), share(still, 0))
        for joint, rms, nrmse, moving, still in zip(joints, *columns)
    ]


def diagnostics_text(diagnostics: dict) -> str:
    """The `diagnostics` part of a result in one line."""
    count = diagnostics["divergences"]
    return (
        f"{count} divergence{'' if count == 1 else 's'}, R-hat {_number(diagnostics['max_rhat'], 4)}, effective draws "
        f"{diagnostics['min_ess_bulk']:.0f} (bulk) {diagnostics['min_ess_tail']:.0f} (tail)"
    )


def interval_text(row: dict) -> str:
    """`low .. high` of a parameter row; an end that differs from 0 by a millionth of the width is 0."""
    low, high = row["interval95"]
    if low is None or high is None:
        return f"{_number(low, 4)} .. {_number(high, 4)}"
    low, high = (0.0 if abs(end) < 1e-6 * (high - low) else end for end in (low, high))
    return f"{low:.4g} .. {high:.4g}"


def share(value, digits: int = 1) -> str:
    """A share in percent, `-` where there is none."""
    return "-" if value is None or value != value else f"{round(100 * value, digits) + 0.0:.{digits}f} %"


def _posterior_sections(document):
    sections = []
    cautions = [f"Problem: {text}" for text in document.get("problems", [])]
    cautions += [f"Warning: {text}" for text in document.get("warnings", [])]
    if cautions:
        sections.append(text_section("Problems and warnings", cautions))
    for part in document.get("validation", []):
        head, rows = held_out_table(document["joints"], part)
        sections.append(table_section(f"Held out: {Path(part.get('path') or 'run').name}", head, rows, f"{NRMSE}."))
    if document.get("diagnostics"):
        sections.append(text_section("Diagnostics of the chains", [diagnostics_text(document["diagnostics"])]))
    conflicts = document.get("prior", {}).get("conflicts", [])
    if conflicts:
        sections.append(text_section("Conflicts of prior and data", conflicts))
    if "friction_comparison" in document:
        sections.append(_comparison_section(document["joints"], document["friction_comparison"]))
    return sections


def _comparison_section(joints, part):
    total = {law: sum(v for v in elpd if v is not None) for law, elpd in zip(part["laws"], part["elpd"])}
    rows = []
    for law, difference, error in zip(part["laws"], part["difference"], part["standard_error"]):
        cells = ["-" if d is None else "best" if d == 0 else f"{d:.1f} ({_number(e, 3)})" for d, e in zip(difference, error)]
        rows.append((law, *cells))
    rows.sort(key=lambda row: -total[row[0]])
    note = f"{COMPARISON[0].upper()}{COMPARISON[1:]}. Chosen: {part['reason']}"
    return table_section("Comparison of friction laws", ("friction law", *joints), rows, note)


def _number(value, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}g}"
