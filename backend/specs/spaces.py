"""Kinds of observations and actions."""

from typing import Literal

Observation = Literal["pixels", "vector"]
Actions = Literal["discrete", "continuous"]
