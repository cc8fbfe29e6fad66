"""The registry of algorithms: how each entry of `backend.specs.algorithms` is built here."""

from collections.abc import Callable

from backend.specs.run import RunSpec
from workers.engine.algorithms.paac import Paac
from workers.engine.learner import Learner

LEARNERS: dict[str, Callable[[RunSpec], Learner]] = {"paac": Paac}
