"""`result.json`: the document that every command writes, and folders that are written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bayesid.errors import ResultError
from bayesid.results.estimate import Estimate

RESULT_SCHEMA = 1
# Files of an earlier result that a new one need not have: figures, and the robot that only a consistent fit writes.
_REMADE = (".png", ".urdf")


def parameter_rows(estimate: Estimate) -> list[dict]:
    """The `parameters` part: name, unit, kind, estimate, std and 95 % interval of each parameter."""
    interval = estimate.interval(0.95)
    return [
        {
            "name": name,
            "unit": unit,
            "kind": kind,
            "estimate": float(mean),
            "std": float(std),
            "interval95": [float(low), float(high)],
        }
        for name, unit, kind, mean, std, (low, high) in zip(
            estimate.names, estimate.units, estimate.kinds, estimate.mean, estimate.std, interval
        )
    ]


def file_sha256(path) -> str:
    """SHA-256 of a file's bytes, read in pieces."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_folder(path, fill: Callable[[Path], None]) -> Path:
    """Let `fill` write into a fresh folder beside `path`, then put it in its place: written whole or not at all.

    An existing folder is replaced only if it is empty or holds a result of the same command, and nothing that the new
    result does not have (figures and the identified robot apart). Raises ResultError otherwise.
    """
    target = Path(path)
    check_folder(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staged = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise ResultError(f"{target}: cannot be written: {error.strerror}") from error
    try:
        fill(staged)
        _check_replacement(target, staged)
        staged.chmod(0o777 & ~_umask())
        if target.exists():
            shutil.rmtree(target)
        os.replace(staged, target)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    return target


def check_folder(path, command: str | None = None) -> None:
    """Refuse a folder that cannot take a result (of `command`), before the work for it is done. Raises ResultError."""
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise ResultError(f"{target}: is a file; name a folder with --out")
    if not target.is_dir() or not any(target.iterdir()):
        return
    if not (target / "result.json").is_file():
        raise ResultError(f"{target}: holds files that bayesid did not write; name another folder with --out")
    held = _command_of(target)
    if command is not None and held is not None and held != command:
        raise ResultError(f"{target}: holds a result of 'bayesid {held}', which would be lost; name another folder with --out")


def _check_replacement(target, staged):
    if not target.is_dir():
        return
    check_folder(target, _command_of(staged))
    fresh = {item.name for item in staged.iterdir()}
    lost = sorted(item.name for item in target.iterdir() if item.name not in fresh and item.suffix not in _REMADE)
    if lost:
        raise ResultError(f"{target}: holds '{lost[0]}', which the new result would replace; name another folder with --out")


def _command_of(folder):
    try:
        return json.loads((folder / "result.json").read_text(encoding="utf-8")).get("command")
    except (OSError, ValueError, AttributeError):
        return None


def read_result(path) -> dict:
    """A result document from its file or its folder. Raises ResultError naming what is wrong."""
    file = Path(path)
    if file.is_dir():
        file = file / "result.json"
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultError(f"{file}: cannot be read: {error.strerror}; name a result folder or its result.json") from error
    except ValueError as error:
        raise ResultError(f"{file}: not a JSON file: {error}") from error
    if not isinstance(document, dict) or "bayesid" not in document or "command" not in document:
        raise ResultError(f"{file}: not a result written by bayesid")
    if document.get("schema") != RESULT_SCHEMA:
        raise ResultError(f"{file}: result schema {document.get('schema')!r}, this version reads {RESULT_SCHEMA}")
    return document


def json_text(document: dict) -> str:
    """JSON text of a document; numbers that are not finite become null, arrays lists."""
    return json.dumps(_plain(document), indent=1, ensure_ascii=False)


def _plain(value):
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
