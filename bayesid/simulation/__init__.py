"""Simulated robots: actuators, control laws, closed loops, and the logs that they leave."""

from bayesid.simulation.synthetic import IDEAL, Sensors, sense, synthetic_log

__all__ = ["IDEAL", "Sensors", "sense", "synthetic_log"]
