"""Errors that a user can mend: one line that says what, where and how; the command line exits with 2 on each."""


class BayesidError(Exception):
    """Base of every error raised for input that cannot be used."""


class RobotError(BayesidError):
    """A robot description that cannot be read or does not fit its use."""


class LogError(BayesidError):
    """A log file or schema that cannot be read as declared."""


class SignalError(BayesidError):
    """Samples that cannot be derived from a log as asked."""


class ModelError(BayesidError):
    """A model whose parts do not fit together (sizes, names, friction law)."""


class DataError(BayesidError):
    """Data that cannot support the estimate asked for."""


class ResultError(BayesidError):
    """A result file that cannot be read, or a question that a result cannot answer."""


class SolverError(BayesidError):
    """A solver that ended without a usable solution."""


class DesignError(BayesidError):
    """An excitation request that cannot be met."""
