"""The registry of algorithms: how each entry of `backend.specs.algorithms` is built here."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from backend.specs.run import RunSpec
from workers.engine.algorithms import a3c, async_q, dqn, ga3c, hogwild_actor, paac, paac_method, paac_q
from workers.engine.algorithms.hogwild import Hogwild
from workers.engine.algorithms.paac_master import Master
from workers.engine.envs.base import World
from workers.engine.learner import Learner, Policy


class Engine(NamedTuple):
    """What the training loop and the evaluation need of an algorithm."""

    learner: Callable[[RunSpec], Learner]
    network: Callable[[RunSpec, World], Any]
    """The module whose parameters a checkpoint's theta are."""
    policy: Callable[[RunSpec, Any, torch.device, int], Policy]
    """How such a network acts when it is evaluated, given a seed."""


def _asynchronous(maker: hogwild_actor.MethodMaker) -> Engine:
    return Engine(lambda spec: Hogwild(spec, maker), maker.network, maker.policy)


def _synchronous(maker: paac_method.MethodMaker) -> Engine:
    return Engine(lambda spec: Master(spec, maker), maker.network, maker.policy)


def _gorila(spec: RunSpec) -> Learner:
    # Ray is for those who train with it alone.
    from workers.engine.algorithms.gorila import Gorila

    return Gorila(spec)


ENGINES: dict[str, Engine] = {
    "paac": _synchronous(paac.PAAC),
    "paac_q": _synchronous(paac_q.PAAC_Q),
    "ga3c": Engine(ga3c.Ga3c, ga3c.network, ga3c.policy),
    "a3c": _asynchronous(a3c.A3C),
    "n_step_q": _asynchronous(async_q.N_STEP_Q),
    "one_step_q": _asynchronous(async_q.ONE_STEP_Q),
    "one_step_sarsa": _asynchronous(async_q.ONE_STEP_SARSA),
    "dqn": Engine(dqn.Dqn, dqn.network, dqn.policy),
    "gorila_dqn": Engine(_gorila, dqn.network, dqn.policy),
}
