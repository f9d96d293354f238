"""Entry point. A command's module is imported only when that command runs, so that help and errors come at once."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

import bayesid
from bayesid.errors import BayesidError

COMMANDS = {
    "demo": ("bayesid.cli.demo", "the main job on an embedded example: simulate a log, identify, report"),
    "robots": ("bayesid.cli.robots", "list the built-in robots, or show one with its limits and consistency check"),
    "datasets": ("bayesid.cli.datasets", "list public recordings, or fetch one"),
    "identify": ("bayesid.cli.identify", "identify a robot from its logs"),
    "validate": ("bayesid.cli.validate", "judge a result on further logs"),
    "drive-gains": ("bayesid.cli.drive_gains", "estimate drive gains from motor currents, unloaded and with a weighed load"),
    "excite": ("bayesid.cli.excite", "design an excitation trajectory, or check a run against its design"),
    "posterior": ("bayesid.cli.posterior", "sample the posterior of link, rotor and friction parameters"),
    "payload": ("bayesid.cli.payload", "estimate mass, centre of mass and inertia of what the robot holds"),
    "report": ("bayesid.cli.report", "write the HTML report of a result again"),
}


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}; '{self.prog} --help' tells more\n")


def main(argv=None) -> int:
    """Run one command. Returns 0 done, 1 done but a stated goal was missed, 2 bad input."""
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    if not argv or argv[0] not in COMMANDS:
        parser.parse_args(argv or ["--help"])
        return 2
    _prepare_environment()
    module = importlib.import_module(COMMANDS[argv[0]][0])
    command = Parser(
        prog=f"bayesid {argv[0]}",
        description=COMMANDS[argv[0]][1][0].upper() + COMMANDS[argv[0]][1][1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(command)
    args = command.parse_args(argv[1:])
    # Small matrices gain nothing from BLAS threads, and lose much where cores are shared.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        _check_output(argv[0], args)
        status = module.run(args)
        sys.stdout.flush()
        return status
    except BayesidError as error:
        print(f"bayesid {argv[0]}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # As a shell reports a program that SIGPIPE ended: 1 would say that a goal was missed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        print(f"bayesid {argv[0]}: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"bayesid {argv[0]}: interrupted, nothing written", file=sys.stderr)
        return 130


def _check_output(command, args):
    """Refuse an --out that cannot take the result before the work is done, not after."""
    if command != "report" and getattr(args, "out", None) is not None:
        from bayesid.results import check_folder

        check_folder(args.out, command)


def _parser():
    parser = Parser(
        prog="bayesid",
        description="Identifies robot manipulators from logged data and says how sure it is.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="commands:\n"
        + "\n".join(f"  {name:<12} {text}" for name, (_, text) in COMMANDS.items())
        + "\n\n'bayesid COMMAND --help' tells more. Exit status: 0 done, 1 done but a stated goal was missed, 2 bad input.",
    )
    parser.add_argument("command", choices=tuple(COMMANDS), metavar="COMMAND", help="one of those below")
    parser.add_argument("--version", action="version", version=f"bayesid {bayesid.__version__}")
    return parser


def _prepare_environment():
    """Keep JAX's compiled functions between runs, and small matrix products on one thread; the user's own settings win."""
    # The triangular factors are small: more BLAS threads gain nothing, and wait for each other on a busy machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(base) / "bayesid" / "jax"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
