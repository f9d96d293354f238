"""Recorded logs: files in, checked `Log` out. Nothing here filters, resamples or guesses a unit."""

from bayesid.logs.log import Log, check_robot
from bayesid.logs.reading import iter_log, read_log
from bayesid.logs.schema import Schema, load_schema, schema_names
from bayesid.logs.writing import write_log

__all__ = ["Log", "Schema", "check_robot", "iter_log", "load_schema", "read_log", "schema_names", "write_log"]
