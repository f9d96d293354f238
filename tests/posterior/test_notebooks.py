"""The notebooks run as they stand."""

import runpy
from pathlib import Path

import matplotlib
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "notebooks"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["first_posterior", "friction_models", "decisions"])
def test_notebook_runs(name, capsys):
    matplotlib.use("Agg")
    runpy.run_path(str(FOLDER / f"{name}.py"))
    assert capsys.readouterr().out
