"""The command line: parse, call, print, write."""

from bayesid.cli.main import main

__all__ = ["main"]
