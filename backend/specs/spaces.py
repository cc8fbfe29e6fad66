"""Kinds of observations and actions.

Apart from algorithms and environments, which both name them and would import each other in a circle.
"""

from typing import Literal

Observation = Literal["pixels", "vector"]
Actions = Literal["discrete", "continuous"]
