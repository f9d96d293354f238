"""Writing logs in bayesid's own layout, which the schema preset "bayesid" reads back."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from bayesid.errors import LogError
from bayesid.logs.log import Log


def write_log(log: Log, path: str | Path) -> Path:
    """Write time and every recorded channel, numbers to full precision, as .csv, .csv.gz, .parquet or .npz.

    Channels become columns <channel>_1, <channel>_2, ... (arrays <channel> in NPZ). The file appears whole or not at
    all. Raises LogError for an unknown suffix, for a log with raw effort (whose unit the layout cannot hold), or when
    the file cannot be written.
    """
    path = Path(path)
    if log.effort_kind == "raw":
        raise LogError(f"{path}: a log whose effort has no physical unit cannot be written in bayesid's layout")
    name = path.name.lower()
    columns = {"time": log.time}
    for channel in log.channels:
        columns |= {f"{channel}_{j + 1}": getattr(log, channel)[:, j] for j in range(log.dof)}
    partial = path.with_name(f".{path.name}.partial")
    try:
        if name.endswith((".csv", ".csv.gz")):
            with gzip.open(partial, "wt") if name.endswith(".gz") else open(partial, "w") as file:
                file.write(",".join(columns) + "\n")
                for row in np.column_stack(list(columns.values())).tolist():
                    file.write(",".join(map(repr, row)) + "\n")
        elif name.endswith((".parquet", ".pq")):
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table(columns), partial)
        elif name.endswith(".npz"):
            with open(partial, "wb") as file:
                np.savez_compressed(file, time=log.time, **{channel: getattr(log, channel) for channel in log.channels})
        else:
            raise LogError(f"{path}: a log is written as .csv, .csv.gz, .parquet or .npz")
        partial.replace(path)
    except OSError as error:
        raise LogError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)
    return path
