"""A page about any result document: parameters with intervals, fit, data; no samples needed."""

from __future__ import annotations

import json

from bayesid.report.figures import parameter_figure
from bayesid.report.page import figure_section, html_page, png, table_section, text_section

_SHOWN = {"parameters", "data", "bayesid", "schema", "command", "robot", "joints"}


def document_page(document: dict, estimate=None) -> str:
    """HTML text of a result document; `estimate`, if there is one, adds the figure of its intervals."""
    sections = []
    if "parameters" in document:
        rows = [
            (
                row["name"],
                _number(row["estimate"], 5),
                _number(row["std"], 2),
                f"{_number(row['interval95'][0], 4)} .. {_number(row['interval95'][1], 4)}",
                row["unit"],
            )
            for row in document["parameters"]
        ]
        sections.append(table_section("Parameters", ("parameter", "estimate", "std", "95 % interval", "unit"), rows))
    if estimate is not None:
        missing = set(estimate.names) - {row["name"] for row in document.get("parameters", [])}
        if missing:
            raise ValueError(f"its estimate.json is of another result: '{min(missing)}' is not in result.json")
        sections.append(figure_section("Intervals", png(parameter_figure(estimate))))
    for part in document.get("data", []):
        steps = ", ".join(step["name"] for step in part.get("steps", []))
        sections.append(text_section(f"Data: {part.get('path')}", [f"SHA-256 {part.get('sha256')}", f"steps: {steps}"]))
    for key, value in document.items():
        if key not in _SHOWN:
            sections.append(text_section(key.replace("_", " "), [json.dumps(value, ensure_ascii=False)]))
    lead = f"bayesid {document['bayesid']} {document['command']}"
    return html_page(f"{document['command']}: {document.get('robot', '')}", lead, sections)


def _number(value, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}g}"
