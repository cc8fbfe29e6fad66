"""Kinds of observations and actions.

A module of its own, since algorithms and environments both name these kinds and would import each other in
a circle.
"""

from typing import Literal

Observation = Literal["pixels", "vector"]
Actions = Literal["discrete", "continuous"]
