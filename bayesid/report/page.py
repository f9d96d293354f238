"""One HTML page with everything inside: sections of text, tables and figures; no network, no scripts."""

from __future__ import annotations

import base64
import html
import io
from dataclasses import dataclass

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222}
h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid #ddd}
table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto}
td,th{padding:.15rem .6rem;text-align:right;border-bottom:1px solid #eee;white-space:nowrap}
td:first-child,th:first-child{text-align:left}img{max-width:100%}p.note{color:#555}
""".strip()


@dataclass(frozen=True)
class Section:
    """A heading and the HTML below it."""

    title: str
    body: str


def text_section(title: str, paragraphs) -> Section:
    """Plain text paragraphs."""
    return Section(title, "".join(f"<p>{html.escape(str(line))}</p>" for line in paragraphs))


def table_section(title: str, head, rows, note: str = "") -> Section:
    """A table; cells are shown as given."""
    head_html = "".join(f"<th>{html.escape(str(cell))}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    below = f'<p class="note">{html.escape(note)}</p>' if note else ""
    return Section(title, f"<table><thead><tr>{head_html}</tr></thead><tbody>{body}</tbody></table>{below}")


def figure_section(title: str, figure, note: str = "", dpi: int = 110) -> Section:
    """A matplotlib Figure, or its PNG bytes, embedded."""
    data = base64.b64encode(figure if isinstance(figure, bytes) else png(figure, dpi)).decode()
    below = f'<p class="note">{html.escape(note)}</p>' if note else ""
    return Section(title, f'<img alt="{html.escape(title)}" src="data:image/png;base64,{data}">{below}')


def png(figure, dpi: int = 80) -> bytes:
    """PNG bytes of a matplotlib Figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, pil_kwargs={"compress_level": 4})
    return buffer.getvalue()


def html_page(title: str, lead: str, sections) -> str:
    """The whole page."""
    body = "".join(f"<section><h2>{html.escape(s.title)}</h2>{s.body}</section>" for s in sections)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><h1>{html.escape(title)}</h1><p>{html.escape(lead)}</p>{body}</body></html>\n"
    )
