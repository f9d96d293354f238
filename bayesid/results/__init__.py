"""Results: the Estimate that every estimator returns, and the result document that the command line writes."""

from bayesid.results.document import (
    RESULT_SCHEMA,
    check_folder,
    file_sha256,
    json_text,
    parameter_rows,
    read_result,
    write_folder,
)
from bayesid.results.estimate import Estimate, Prediction, join_estimates

__all__ = [
    "RESULT_SCHEMA",
    "Estimate",
    "Prediction",
    "check_folder",
    "file_sha256",
    "join_estimates",
    "json_text",
    "parameter_rows",
    "read_result",
    "write_folder",
]
