"""Tables of numbers from CSV, Parquet and NPZ files, read block by block; a bad cell is located and quoted."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bayesid.errors import LogError

BLOCK_BYTES = 1 << 24
CSV_SUFFIXES = (".csv", ".txt", ".tsv", ".csv.gz", ".txt.gz", ".tsv.gz")


@dataclass
class Block:
    """Consecutive rows of a table; `first` is the number of the first one, from 1 without the header.

    Cells that are no number are NaN in `values` and quoted in `bad`, keyed by (row of the block, column of the file).
    """

    first: int
    values: np.ndarray
    bad: dict[tuple[int, int], str] = field(default_factory=dict)


def open_table(path: Path, header: bool, delimiters: tuple[str, ...]):
    """The table in a file, by its suffix; the header (or the width) has been read, the rows have not."""
    if not path.exists():
        raise LogError(f"{path}: no such file")
    if not path.is_file():
        raise LogError(f"{path}: not a file")
    try:
        if path.stat().st_size == 0:
            raise LogError(f"{path}: the file is empty")
        name = path.name.lower()
        if name.endswith(".npz"):
            return NpzTable(path)
        if name.endswith((".parquet", ".pq")):
            return ParquetTable(path)
        if name.endswith(".db3"):
            from bayesid.logs.bag import BagTable

            return BagTable(path)
        if name.endswith(CSV_SUFFIXES):
            return CsvTable(path, header, delimiters)
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror or error}") from None
    raise LogError(f"{path}: unknown kind of file; known are {', '.join(CSV_SUFFIXES)}, .parquet, .npz, .db3")


class CsvTable:
    """A delimited text file, plain or gzipped, of `width` columns; `names` is None when it has no header."""

    def __init__(self, path: Path, header: bool, delimiters: tuple[str, ...]):
        self.path = path
        self.header = header
        with self._lines() as lines:
            top = list(itertools.islice(lines, 2))
        if any("\0" in line or "\ufffd" in line for line in top):
            raise LogError(f"{path}: not a text file in UTF-8: compressed files end in .gz, others must be converted")
        first = next((line for line in top if line.strip()), "")
        if not first:
            raise LogError(f"{path}: the file is empty")
        self.delimiter = max(delimiters, key=first.count)
        cells = self._cells(first)
        if len(cells) == 1:
            other = max(",;\t |", key=first.strip().count)
            if first.strip().count(other) and other not in delimiters:
                raise LogError(
                    f"{path} row 1: one column only; its cells seem to be separated by {other!r}, the schema says "
                    f"{' or '.join(map(repr, delimiters))}: set delimiter in the schema"
                )
        if not header and len(top) > 1 and not any(_is_number(cell) for cell in cells):
            raise LogError(
                f"{path} row 1: text instead of numbers, first '{_short(cells[0])}': the file has a header, the schema "
                "says none"
            )
        if header and all(_is_number(cell) for cell in cells):
            raise LogError(f"{path}: the header is missing: line 1 holds numbers, the schema names columns")
        self.names = tuple(cells) if header else None
        if header and len(set(cells)) < len(cells):
            twice = next(cell for cell in cells if cells.count(cell) > 1)
            if twice:
                raise LogError(f"{path} line 1: the column '{twice}' appears twice in the header")
        if header and len(top) < 2:
            raise LogError(f"{path}: a header but no rows")
        self.width = len(cells)

    def blocks(self, columns: tuple[int, ...], first: int) -> Iterator[Block]:
        """Blocks of the columns (counted from 0) from row `first` on, the rest of the file in order."""
        row = 1
        try:
            for values in self._fast(columns):
                block = Block(row, values)
                row += len(values)
                if row <= first:
                    continue
                if not np.isfinite(values).all():
                    # Arrow reads an empty cell and the text NA as missing: the slow reader can quote what stands there.
                    block = next(self._slow(columns, block.first, len(values)), None)
                if block is not None:
                    yield block
        except _ArrowRefused:
            yield from self._slow(columns, row, 1 << 16)

    def _fast(self, columns: tuple[int, ...]) -> Iterator[np.ndarray]:
        import pyarrow as pa
        import pyarrow.csv as pc

        names = [f"c{i}" for i in range(self.width)]
        wanted = [names[i] for i in columns]
        try:
            reader = pc.open_csv(
                str(self.path),
                read_options=pc.ReadOptions(column_names=names, skip_rows=int(self.header), block_size=BLOCK_BYTES),
                parse_options=pc.ParseOptions(delimiter=self.delimiter, ignore_empty_lines=False),
                convert_options=pc.ConvertOptions(
                    include_columns=wanted,
                    column_types={name: pa.float64() for name in wanted},
                    strings_can_be_null=False,
                ),
            )
            for batch in reader:
                if batch.num_rows:
                    yield np.column_stack([batch.column(name).to_numpy(zero_copy_only=False) for name in wanted])
        except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError, OSError):
            raise _ArrowRefused from None

    def _slow(self, columns: tuple[int, ...], first: int, rows: int) -> Iterator[Block]:
        with self._lines() as lines:
            body = itertools.islice(lines, int(self.header) + first - 1, None)
            while chunk := list(itertools.islice(body, rows)):
                if not chunk[-1].strip():
                    # Empty lines at the very end are no rows.
                    rest = next((line for line in body if line.strip()), None)
                    if rest is None:
                        while chunk and not chunk[-1].strip():
                            chunk.pop()
                        if not chunk:
                            return
                    else:
                        body = itertools.chain([rest], body)
                values = np.full((len(chunk), len(columns)), np.nan)
                bad: dict[tuple[int, int], str] = {}
                for i, line in enumerate(chunk):
                    cells = self._cells(line)
                    if len(cells) != self.width and not (len(cells) == self.width + 1 and not cells[-1]):
                        text = "the row is empty" if not line.strip() else f"the row has {len(cells)} of {self.width} columns"
                        bad[i, len(cells) if len(cells) < self.width else -1] = text
                        continue
                    for k, column in enumerate(columns):
                        try:
                            values[i, k] = _number(cells[column])
                        except ValueError:
                            cell = cells[column]
                            bad[i, column] = f"not a number: '{_short(cell)}'" if cell else "the cell is empty"
                yield Block(first, values, bad)
                first += len(chunk)

    def _cells(self, line: str) -> list[str]:
        line = line.rstrip("\r\n")
        if '"' in line:
            try:
                cells = next(csv.reader([line], delimiter=self.delimiter), [])
            except csv.Error:
                cells = line.split(self.delimiter)
        else:
            cells = line.split(self.delimiter)
        return [cell.strip() for cell in cells]

    def _lines(self):
        return _Lines(self.path)


class ParquetTable:
    """A Parquet file; its columns are named."""

    def __init__(self, path: Path):
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path = path
        self.header = False
        try:
            self._file = pq.ParquetFile(path)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            raise LogError(f"{path}: not a Parquet file: {_short(str(error).splitlines()[0], 80)}") from None
        self.names = tuple(self._file.schema_arrow.names)
        self.width = len(self.names)
        if not self._file.metadata.num_rows:
            raise LogError(f"{path}: the file has no rows")

    def blocks(self, columns: tuple[int, ...], first: int) -> Iterator[Block]:
        import pyarrow as pa

        wanted = [self.names[i] for i in columns]
        row = 1
        try:
            for batch in self._file.iter_batches(batch_size=1 << 16, columns=list(dict.fromkeys(wanted))):
                if row + batch.num_rows > first:
                    arrays = []
                    for name in wanted:
                        try:
                            arrays.append(batch.column(name).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
                        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                            raise LogError(f"{self.path} column '{name}': not numbers but {batch.column(name).type}") from None
                    yield Block(row, np.column_stack(arrays))
                row += batch.num_rows
        except (pa.ArrowInvalid, OSError) as error:
            raise LogError(
                f"{self.path} after row {row}: damaged Parquet file: {_short(str(error).splitlines()[0], 80)}"
            ) from None


class NpzTable:
    """A NumPy archive. An array of shape (N, n) counts as n columns <array>_1, <array>_2, ...; (N,) as one."""

    def __init__(self, path: Path):
        self.path = path
        self.header = False
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
            reason = _short(str(error).splitlines()[0] if str(error) else type(error).__name__, 80)
            raise LogError(f"{path}: not a NumPy archive of plain arrays: {reason}") from None
        self.text = {name: tuple(str(v) for v in a.ravel()) for name, a in arrays.items() if a.dtype.kind in "US"}
        columns = {}
        for name, array in arrays.items():
            if array.dtype.kind not in "fiub":
                continue
            if array.ndim == 1:
                columns[name] = array
            elif array.ndim == 2:
                columns |= {f"{name}_{j + 1}": array[:, j] for j in range(array.shape[1])}
        lengths = {name: len(array) for name, array in columns.items()}
        if not lengths or not max(lengths.values()):
            raise LogError(f"{path}: the archive has no rows of numbers")
        self.names = tuple(columns)
        self.width = len(columns)
        self._columns = list(columns.values())

    def blocks(self, columns: tuple[int, ...], first: int) -> Iterator[Block]:
        picked = [self._columns[i] for i in columns]
        rows = len(picked[0])
        for i, array in zip(columns, picked):
            if len(array) != rows:
                raise LogError(
                    f"{self.path}: array '{self.names[i]}' has {len(array)} rows, '{self.names[columns[0]]}' has {rows}"
                )
        if first <= rows:
            yield Block(first, np.column_stack([np.asarray(array[first - 1 :], dtype=np.float64) for array in picked]))


class JoinedTable:
    """Several files of one folder whose rows belong together; a column is named <file without suffix>/<column>."""

    def __init__(self, folder: Path, files: tuple[str, ...], delimiters: tuple[str, ...]):
        if not folder.is_dir():
            raise LogError(f"{folder}: not a folder; its schema needs the folder that holds {', '.join(files)}")
        self.path = folder
        self._tables = [open_table(folder / file, True, delimiters) for file in files]
        stems = [file.split(".")[0] for file in files]
        self.names = tuple(f"{stem}/{name}" for stem, table in zip(stems, self._tables) for name in table.names)
        self.width = len(self.names)

    def blocks(self, columns: tuple[int, ...], first: int) -> Iterator[Block]:
        starts = np.cumsum([0] + [table.width for table in self._tables])
        values, bad, rows = {}, {}, None
        for table, start, end in zip(self._tables, starts[:-1], starts[1:]):
            own = tuple(c - int(start) for c in columns if start <= c < end)
            if not own:
                continue
            blocks = list(table.blocks(own, first))
            count = sum(len(b.values) for b in blocks)
            if rows is not None and count != rows:
                raise LogError(f"{self.path}: {table.path.name} has {count} rows, the file before it {rows}: they must agree")
            rows, done = count, 0
            for block in blocks:
                bad |= {(i + done, c + int(start) if c >= 0 else c): text for (i, c), text in block.bad.items()}
                done += len(block.values)
            joined = np.concatenate([block.values for block in blocks]) if blocks else np.empty((0, len(own)))
            begin = blocks[0].first if blocks else first
            values |= {c + int(start): joined[:, k] for k, c in enumerate(own)}
        if rows:
            yield Block(begin, np.column_stack([values[c] for c in columns]), bad)


class _ArrowRefused(Exception):
    """The fast CSV reader met something it cannot read; the slow one says what."""


class _Lines:
    """Text lines of a plain or gzipped file, as a context manager; damage becomes a LogError."""

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self):
        raw = gzip.open(self.path, "rb") if self.path.name.lower().endswith(".gz") else open(self.path, "rb")
        self._text = io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="\n")
        return self._guarded()

    def _guarded(self):
        try:
            yield from self._text
        except (OSError, EOFError, zlib.error) as error:
            raise LogError(f"{self.path}: damaged file: {_short(str(error), 80)}") from None

    def __exit__(self, *_):
        self._text.close()


def _number(cell: str) -> float:
    # Python also takes 1_000 and the digits of other scripts, which no logger writes.
    if "_" in cell or not cell.isascii():
        raise ValueError
    return float(cell)


def _is_number(cell: str) -> bool:
    try:
        _number(cell)
    except ValueError:
        return False
    return True


def _short(text: str, length: int = 24) -> str:
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= length else text[: length - 3] + "..."
