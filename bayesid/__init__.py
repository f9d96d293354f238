"""Identification of robot manipulators from logged data, with calibrated uncertainty.

Importing bayesid turns JAX's 64-bit mode on: rank decisions need it.
"""

import importlib
import os
import sys

__version__ = "0.1.0"

if "jax" in sys.modules:
    sys.modules["jax"].config.update("jax_enable_x64", True)
else:
    os.environ["JAX_ENABLE_X64"] = "1"

_PUBLIC = {
    "BayesidError": "errors",
    "Estimate": "results",
    "Robot": "robots",
    "load_robot": "robots",
    "Model": "models",
    "Log": "logs",
    "Samples": "signals",
    "read_log": "logs",
    "identify": "regression",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name):
    if name in _PUBLIC:
        return getattr(importlib.import_module(f"bayesid.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module 'bayesid' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_PUBLIC])
