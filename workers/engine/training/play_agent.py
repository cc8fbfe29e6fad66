"""The agent of a play session: loading it, and having a recurrent one read what has been played."""

from collections.abc import Callable, Sequence
from pathlib import Path
from secrets import randbits
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.specs.environments import ENVIRONMENTS
from backend.specs.play import PlaySetup
from backend.specs.run import parse_run_spec
from workers.engine.envs import EnvCrashedError, make_env
from workers.engine.methods.base import Policy
from workers.engine.training.restore import repeat_within


def load_agent(setup: PlaySetup, folder: Path) -> Policy:
    """The policy of a session's agent, which acts as in evaluations."""
    from workers.engine.nn.devices import prepare_torch
    from workers.engine.training.evaluation import load_policy

    assert setup.agent is not None
    prepare_torch()
    spec = parse_run_spec(setup.agent.spec)
    return load_policy(spec, folder / setup.agent.checkpoint, randbits(31))


def is_recurrent(agent: Policy) -> bool:
    """Whether an agent must observe every decision of a game, whoever makes it."""
    from workers.engine.nn.policies import GaussianPolicy, RecurrentPolicy

    return isinstance(agent, RecurrentPolicy | GaussianPolicy)


class Reader:
    """Has a recurrent agent read a game from its beginning, in an environment of its own.

    Args:
        setup: of the session.
        read: passes an observation to the agent.
        seed: seed of the game.

    Raises:
        EnvCrashedError: the environment does not start.
    """

    def __init__(self, setup: PlaySetup, read: Callable[[NDArray[Any]], object], seed: int) -> None:
        config = ENVIRONMENTS[setup.environment].config.model_validate(setup.environment_config)
        self._env = make_env(setup.environment, config)
        self._read = read
        self._observation = np.empty(self._env.observation_shape, self._env.observation_dtype)
        self._n = 0
        try:
            self._env.reset(seed, self._observation)
        except EnvCrashedError:
            self._env.close()
            raise

    def read(self, actions: Sequence[int], rewards: Sequence[float], until_s: float) -> bool:
        """Go on reading, at most until then; return whether the agent has read all decisions so far.

        Args:
            actions: of all decisions of the game so far.
            rewards: theirs.
            until_s: on the monotonic clock.

        Raises:
            EnvCrashedError: the environment keeps crashing.
            ReplayMismatchError: a decision gave another reward than recorded, or ended the game.
        """
        while self._n < len(actions) and monotonic() < until_s:
            self._read(self._observation)
            t = self._n
            # The rewards of replays are float32.
            repeat_within(self._env, t, actions[t], np.float32(rewards[t]), self._observation)
            self._n += 1
        return self._n == len(actions)

    def close(self) -> None:
        """Close the environment."""
        self._env.close()
