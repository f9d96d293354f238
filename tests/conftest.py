"""Fixtures shared by all tests: the recordings, found by BAYESID_DATA or beside the checkout."""

import os
from pathlib import Path

# Before NumPy is imported: two test workers on two cores must not wait for each other's BLAS threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest

# Small matrices gain nothing from BLAS threads, and lose much where cores are shared.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def data_root():
    """Folder of the public recordings; tests that need it are skipped where it is absent."""
    root = Path(os.environ.get("BAYESID_DATA", ROOT.parent / "shared" / "datasets"))
    if not root.is_dir():
        pytest.skip(f"recordings not found at {root}: set BAYESID_DATA to the folder that holds them")
    return root


@pytest.fixture(scope="session")
def ur10e_data(data_root):
    """Folder of the UR10e recordings."""
    return data_root / "ur10e_innopolis"
