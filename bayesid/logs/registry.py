"""The registry of public recordings: cards in datasets/, files on the user's machine, checked by their SHA-256."""

from __future__ import annotations

import functools
import hashlib
import os
import tomllib
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from bayesid.errors import LogError

SOURCE = "https://raw.githubusercontent.com/{repository}/{commit}/{path}"


@dataclass(frozen=True)
class DataFile:
    """One file of a data set: `path` in a mirror's folder, `source_path` in the source repository.

    `rows` counts data rows; `window` is the first and last row (from 1) of the motion; `payload_kg` the mass on the
    flange. A file with `download` False is not served by the source at the card's commit: it needs a local mirror.
    """

    path: str
    sha256: str
    bytes: int
    kind: str
    source_path: str
    rows: int | None = None
    window: tuple[int, int] | None = None
    payload_kg: float | None = None
    download: bool = True
    note: str = ""


@dataclass(frozen=True)
class Card:
    """A public data set: where it comes from and what is known about it. `about` is the whole card as read."""

    name: str
    description: str
    robot: str
    repository: str
    commit: str
    licence: str
    schema: str | None
    rate_hz: float | None
    traps: tuple[str, ...]
    files: tuple[DataFile, ...]
    about: dict = field(compare=False, repr=False)

    def file(self, path: str) -> DataFile:
        """The file of that path, or of that name when only one has it. Raises LogError else."""
        found = [f for f in self.files if f.path == path] or [f for f in self.files if Path(f.path).name == path]
        if len(found) != 1:
            raise LogError(f"data set '{self.name}': {'no' if not found else 'more than one'} file '{path}'")
        return found[0]

    def windows(self) -> dict[str, tuple[int, int]]:
        """First and last row of the motion by file name, where the card knows them."""
        return {Path(f.path).name: f.window for f in self.files if f.window}


def folder() -> Path:
    """Where the cards are: inside an installed package, or in the checkout."""
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "_datasets", package.parent / "datasets"):
        if candidate.is_dir():
            return candidate
    raise LogError(
        f"the registry of data sets is missing: neither {package / '_datasets'} nor {package.parent / 'datasets'} "
        "exists: install bayesid again"
    )


@functools.cache
def _tables() -> dict[str, dict]:
    tables = {}
    for path in sorted(folder().glob("*.toml")):
        try:
            tables[path.stem] = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise LogError(f"{path}: not a readable card: {str(error).splitlines()[0]}") from None
    return tables


def names() -> tuple[str, ...]:
    """Names of the recorded data sets."""
    return tuple(name for name, table in _tables().items() if "recipe" not in table)


def recipes() -> tuple[str, ...]:
    """Names of the simulated data sets, which are made and not fetched."""
    return tuple(name for name, table in _tables().items() if "recipe" in table)


def recipe(name: str) -> dict:
    """How a simulated data set is made: robot, trajectory, sampling, noise and seed."""
    if name not in recipes():
        raise LogError(f"no recipe '{name}'; known are {', '.join(recipes())}")
    return _tables()[name]


def card(name: str) -> Card:
    """One card. Raises LogError naming the known ones."""
    if name in recipes():
        raise LogError(f"data set '{name}' is simulated, not fetched: bayesid demo makes it")
    if name not in names():
        raise LogError(f"no data set '{name}'; known are {', '.join(names())}")
    table = _tables()[name]
    files = tuple(
        DataFile(
            path=f["path"],
            sha256=f["sha256"],
            bytes=f["bytes"],
            kind=f.get("kind", ""),
            source_path=f.get("source_path", f["path"]),
            rows=f.get("rows"),
            window=tuple(f["window"]) if "window" in f else None,
            payload_kg=f.get("payload_kg"),
            download=f.get("download", True),
            note=f.get("note", ""),
        )
        for f in table["file"]
    )
    return Card(
        name=name,
        description=table["description"],
        robot=table["robot"],
        repository=table["source"]["repository"],
        commit=table["source"]["commit"],
        licence=table["source"]["licence"],
        schema=table.get("schema"),
        rate_hz=table.get("rate_hz"),
        traps=tuple(table.get("traps", ())),
        files=files,
        about=table,
    )


def cards() -> tuple[Card, ...]:
    """All cards of recorded data sets."""
    return tuple(card(name) for name in names())


def mirror(data: str | Path | None = None) -> Path | None:
    """The local folder of recordings: `data`, else the environment variable BAYESID_DATA, else None."""
    given = data if data is not None else os.environ.get("BAYESID_DATA")
    if not given:
        return None
    path = Path(given)
    if not path.is_dir():
        raise LogError(f"{path}: no such folder of recordings (from {'--data' if data is not None else 'BAYESID_DATA'})")
    return path


def cache() -> Path:
    """Where downloads are kept: BAYESID_CACHE, else the user's cache folder."""
    base = os.environ.get("BAYESID_CACHE")
    if base:
        return Path(base) / "datasets"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "bayesid" / "datasets"


def fetch(
    name: str, files: list[str] | None = None, *, data: str | Path | None = None, source: str = SOURCE
) -> tuple[Path, ...]:
    """Paths of a data set's files on this machine, each checked against its SHA-256.

    With a mirror (`data` or BAYESID_DATA; its sub-folder `name`, or itself) files are taken from there and nothing is
    copied. Without one they are downloaded from the card's repository and commit into `cache()`, whole or not at all.
    `files` picks some by path or name; without it all that can be had are fetched. Raises LogError when a file is
    missing, cannot be downloaded, or has other contents than the card says.
    """
    about = card(name)
    wanted = about.files if files is None else tuple(about.file(path) for path in files)
    local = mirror(data)
    if local is not None:
        root = local / name if (local / name).is_dir() else local
        found = tuple(root / f.path for f in wanted)
        for file, path in zip(wanted, found):
            if not path.is_file():
                raise LogError(f"{path}: missing from the mirror of data set '{name}'")
            _verify(path, file, name)
        return found
    if files is None:
        wanted = tuple(f for f in wanted if f.download)
        if not wanted:
            raise LogError(f"data set '{name}' cannot be downloaded: name a local mirror with --data or BAYESID_DATA")
    return tuple(_download(about, file, source) for file in wanted)


def _download(about: Card, file: DataFile, source: str) -> Path:
    path = cache() / about.name / file.path
    if path.is_file():
        _verify(path, file, about.name)
        return path
    if not file.download:
        raise LogError(
            f"{file.path} of data set '{about.name}': {file.note or 'needs a local mirror'} (--data or BAYESID_DATA)"
        )
    url = source.format(repository=about.repository, commit=about.commit, path=urllib.parse.quote(file.source_path))
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with urllib.request.urlopen(url, timeout=60) as response, partial.open("wb") as out:
            while chunk := response.read(1 << 20):
                out.write(chunk)
        _verify(partial, file, about.name)
        partial.replace(path)
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise LogError(f"{url}: cannot be downloaded: {reason}; name a local mirror with --data or BAYESID_DATA") from None
    finally:
        partial.unlink(missing_ok=True)
    return path


def _verify(path: Path, file: DataFile, name: str) -> None:
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror}") from None
    if digest != file.sha256:
        raise LogError(
            f"{path}: not the file that data set '{name}' describes (SHA-256 {digest[:12]}..., the card says "
            f"{file.sha256[:12]}...): get it again"
        )
