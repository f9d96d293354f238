"""Models: which parameters of a robot are unknown, their order, names and units, and which combinations data can determine."""

from bayesid.models.base import BaseParameters
from bayesid.models.model import Model

__all__ = ["BaseParameters", "Model"]
