"""The agent of a play session: it is loaded while the person plays, and a recurrent one reads their game.

A recurrent agent observes every decision from the first of the episode on, whoever makes it, so that its
state is the one that it would have had if it had watched.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from secrets import randbits
from threading import Thread
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.specs.environments import ENVIRONMENTS
from backend.specs.play import PlaySetup
from backend.specs.run import parse_run_spec
from workers.engine.envs import EnvCrashedError, make_env
from workers.engine.methods.base import Policy
from workers.engine.training.restore import ReplayMismatchError, repeat_within

READ_S = 0.02
"""How long an agent reads a game before the player's messages are looked at again."""
MAX_REASON_CHARS = 300
_ENVIRONMENT = np.zeros(1, np.int64)
"""Index of the environment, for the policy."""


def load_agent(setup: PlaySetup, folder: Path) -> Policy:
    """The policy of a session's agent, which acts as in evaluations."""
    from workers.engine.nn.devices import prepare_torch
    from workers.engine.training.evaluation import load_policy

    assert setup.agent is not None
    prepare_torch()
    spec = parse_run_spec(setup.agent.spec)
    return load_policy(spec, folder / setup.agent.checkpoint, randbits(31))


def _is_recurrent(policy: Policy) -> bool:
    from workers.engine.nn.policies import GaussianPolicy, RecurrentPolicy

    return isinstance(policy, RecurrentPolicy | GaussianPolicy)


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


class SessionAgent:
    """The agent of a session, in one game after the other.

    Args:
        setup: of the session.
        load: loads its policy; called in a thread of its own.
    """

    def __init__(self, setup: PlaySetup, load: Callable[[], Policy]) -> None:
        self._setup = setup
        self._load = load
        self._loaded: Future[Policy] | None = None
        self._policy: Policy | None = None
        self._is_recurrent = False
        self._seed = 0
        self._reader: Reader | None = None
        self.must_read = False
        """Whether it has not observed all decisions of the game, as a recurrent agent must."""
        self.unavailable: str | None = None
        """Why it cannot act in this game; None: it can, or nothing is known yet."""

    @property
    def is_loading(self) -> bool:
        """Whether it has yet to be loaded."""
        return self._policy is None and self.unavailable is None

    @property
    def is_ready(self) -> bool:
        """Whether it can choose the next action."""
        return not (self.is_loading or self.must_read or self.unavailable)

    @property
    def watches(self) -> bool:
        """Whether it must be asked at the next decision, whoever makes it."""
        return self._is_recurrent and self.is_ready

    def start_loading(self) -> None:
        """Start to load its policy, once for a session.

        The end of the process does not wait for the thread, as it would for that of an executor.
        """
        if self._loaded is not None:
            return
        loaded: Future[Policy] = Future()
        self._loaded = loaded

        def load() -> None:
            try:
                loaded.set_result(self._load())
            except Exception as error:
                loaded.set_exception(error)

        Thread(target=load, name="load-agent", daemon=True).start()

    def start_game(self, seed: int, n_decisions: int) -> None:
        """Forget the game before.

        Args:
            seed: seed of the game.
            n_decisions: number of decisions before its beginning.
        """
        self.close()
        self._seed = seed
        self.unavailable = None
        self._meet_game(n_decisions)
        self.take_loaded(n_decisions)

    def take_loaded(self, n_decisions: int) -> None:
        """Use the policy from now on if it is loaded, after so many decisions of the game."""
        if not self.is_loading or self._loaded is None or not self._loaded.done():
            return
        if (error := self._loaded.exception()) is not None:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            self.unavailable = f"it could not be loaded: {lines[-1][:MAX_REASON_CHARS]}"
            return
        from workers.engine.nn.devices import prepare_torch

        prepare_torch()  # denormals are flushed by thread
        self._policy = self._loaded.result()
        self._is_recurrent = _is_recurrent(self._policy)
        self._meet_game(n_decisions)

    def _meet_game(self, n_decisions: int) -> None:
        if self._policy is not None:
            self._policy.forget(0)
        self.must_read = self._is_recurrent and n_decisions > 0

    def read(self, actions: Sequence[int], rewards: Sequence[float]) -> None:
        """Go on reading the game for a moment, from its first decision on.

        Args:
            actions: of all decisions of the game so far.
            rewards: theirs.
        """
        try:
            if self._reader is None:
                self._reader = Reader(self._setup, self.advise, self._seed)
            if self._reader.read(actions, rewards, monotonic() + READ_S):
                self.must_read = False
                self.close()
        except (EnvCrashedError, ReplayMismatchError) as error:
            self.unavailable = str(error)
            self.must_read = False
            self.close()

    def advise(self, observation: NDArray[Any]) -> int:
        """Its action. A recurrent agent must be asked once at each decision."""
        assert self._policy is not None
        action_N, _, _ = self._policy.act(observation[None], _ENVIRONMENT)
        return int(action_N[0])

    def close(self) -> None:
        """Stop reading."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
