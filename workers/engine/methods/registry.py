"""The registry of methods: how each algorithm of `backend.specs.algorithms` is trained and evaluated.

An algorithm has one line here and one in `backend.specs.algorithms`, under the same id.
"""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import torch

from backend.specs.algorithms import ALGORITHMS
from backend.specs.run import RunSpec
from workers.engine.envs.base import Env
from workers.engine.methods.asynchronous import a3c, q
from workers.engine.methods.asynchronous.actor import ActorMethodSpec
from workers.engine.methods.asynchronous.learner import HogwildLearner
from workers.engine.methods.base import Learner, Policy
from workers.engine.methods.dqn import dqn
from workers.engine.methods.ga3c import ga3c
from workers.engine.methods.paac import paac, paac_q
from workers.engine.methods.paac.learner import PaacLearner
from workers.engine.methods.paac.method import RolloutMethodSpec

_SPECS = "backend.specs.algorithms"


class RegisteredMethod(NamedTuple):
    """What the training loop and the evaluation need of an algorithm."""

    learner: Callable[[RunSpec], Learner]
    """Creates the learner of a run, in a process where `prepare_torch` has been called."""
    network: Callable[[Any, Env], Any]
    """Creates the module whose parameters are a checkpoint's theta, given the run's config."""
    policy: Callable[[Any, torch.device, int], Policy]
    """How such a network acts in evaluation, given a seed."""


def _asynchronous(method: ActorMethodSpec) -> RegisteredMethod:
    return RegisteredMethod(lambda spec: HogwildLearner(spec, method), method.network, method.policy)


def _synchronous(method: RolloutMethodSpec) -> RegisteredMethod:
    return RegisteredMethod(lambda spec: PaacLearner(spec, method), method.network, method.policy)


def _gorila(spec: RunSpec) -> Learner:
    # Ray is imported only by runs that train with it.
    from workers.engine.methods.gorila.gorila import Gorila

    return Gorila(spec)


METHODS: dict[str, RegisteredMethod] = {
    "paac": _synchronous(paac.PAAC),
    "paac_q": _synchronous(paac_q.PAAC_Q),
    "ga3c": RegisteredMethod(ga3c.Ga3c, ga3c.network, ga3c.policy),
    "a3c": _asynchronous(a3c.A3C),
    "n_step_q": _asynchronous(q.N_STEP_Q),
    "one_step_q": _asynchronous(q.ONE_STEP_Q),
    "one_step_sarsa": _asynchronous(q.ONE_STEP_SARSA),
    "dqn": RegisteredMethod(dqn.Dqn, dqn.network, dqn.policy),
    "gorila_dqn": RegisteredMethod(_gorila, dqn.network, dqn.policy),
}
"""Every method, by the id of its algorithm."""


class RegistryError(RuntimeError):
    """An algorithm has a spec but no method, or a method but no spec."""


def check_registered(algorithms: Collection[str], methods: Collection[str]) -> None:
    """Check that the same ids are registered as specs and as methods.

    Raises:
        RegistryError: they are not; the message names the ids and the missing lines.
    """
    problems = [
        f"{', '.join(missing)}: registered in {there} but not in {here}; add or remove a line"
        for missing, there, here in (
            (sorted(set(algorithms) - set(methods)), _SPECS, __name__),
            (sorted(set(methods) - set(algorithms)), __name__, _SPECS),
        )
        if missing
    ]
    if problems:
        raise RegistryError("; ".join(problems))


check_registered(ALGORITHMS, METHODS)
