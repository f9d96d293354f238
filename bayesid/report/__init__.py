"""Figures and the self-contained HTML report of a result."""

from bayesid.report.figures import parameter_figure, residual_figure, torque_figure
from bayesid.report.page import Section, figure_section, html_page, png, table_section, text_section

__all__ = [
    "Section",
    "figure_section",
    "html_page",
    "parameter_figure",
    "png",
    "residual_figure",
    "table_section",
    "text_section",
    "torque_figure",
]
