"""Plays continuations of a recorded episode from one of its decisions.

The episode is repeated up to that decision once, and the environment then copied for every continuation, so
that all of them begin bit for bit equal. Where it cannot be copied (see `envs.copies`), the episode is
repeated for each, and `MAX_REPEATED` at a time are played. The policy computes the actions of all that are
played at a time in one batch. A recurrent one has read every observation of the episode up to there, and each
continuation begins with a copy of its memory.

What differs between continuations is the policy's random numbers: one generator, of the plan's seed, draws
those of every decision for all of them that go on, in their order. With sticky actions the repeated
actions differ, too. All other random numbers of an environment go on as in the episode, and are equal in all
continuations.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.specs.branches import BranchOutcome, BranchPlan, Continuation, End
from backend.specs.run import RunSpec
from workers.engine.envs import Env, Step
from workers.engine.envs.copies import Copies, LocalCopies, copies
from workers.engine.methods.base import Policy
from workers.engine.nn.policies import PolicyWithMemory
from workers.engine.training.restore import RecordedEpisode, environment_of_episode, restore

MAX_REPEATED = 8
"""Environments whose states cannot be copied are played this many at a time: some are large."""
_EPISODE = -1
"""Number of the environment that repeats the episode; those of the continuations count from 0."""


def play_continuations(
    spec: RunSpec,
    replay: Path,
    policies: tuple[Policy, Policy],
    plan: BranchPlan,
    *,
    action_values: bool = False,
    value_is_per_life: bool = False,
    starts: Path | None = None,
    states: Path | None = None,
) -> BranchOutcome:
    """Play the continuations of a plan.

    Args:
        spec: the run that recorded the episode.
        replay: the episode's .npz, written by `EpisodeRecorder.save`.
        policies: two of one network, which takes the observations of the episode's environment: one reads
            the episode, and one, seeded by the plan's seed, acts in the continuations.
        plan: what to play.
        action_values: whether the policies' values are max Q.
        value_is_per_life: whether V predicts the rewards up to a lost life only.
        starts: file of the start set of the episode's protocol; None if it has no set.
        states: file of the episode's emulator states, with which less of it is repeated, unless a policy has
            to read it.

    Raises:
        ReplayMismatchError: repeating the episode gave other rewards than the recorded ones.
        ValueError: the episode ends before the decision, or the starts are missing.
    """
    reader, actor = policies

    def build() -> Env:
        return environment_of_episode(spec, replay, starts)[0]

    env, episode = environment_of_episode(spec, replay, starts)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    _read(env, episode, plan.decision, observation, reader, states)
    memory = reader.memory(_EPISODE) if isinstance(reader, PolicyWithMemory) else None
    _, value_N, policy_NA = _act(reader, observation[None], [_EPISODE])
    value = float(value_N[0])
    if action_values and plan.first_action is not None:
        value = float(policy_NA[0, plan.first_action])

    equal = copies(env, observation, plan.continuations, plan.seed)
    if equal is not None:
        groups: list[Callable[[], Copies]] = [lambda: equal]
    else:
        env.close()
        groups = [
            _repeated(build, episode, plan.decision, min(MAX_REPEATED, plan.continuations - first))
            for first in range(0, plan.continuations, MAX_REPEATED)
        ]
    played: list[Continuation] = []
    for group in groups:
        with closing(group()) as copied:
            played += _play(copied, memory, actor, plan, len(played), value_is_per_life)
    return BranchOutcome(value=value, policy=policy_NA[0].tolist(), continuations=played)


@dataclass
class _Game:
    """A continuation while it is played."""

    number: int
    lives: int
    rewards: list[float] = field(default_factory=list)
    end: End | None = None
    n_valued: int | None = None
    """As `Continuation.n_valued`; None until V predicts no more of them, as after a lost life."""

    def add(self, step: Step, lives: int, *, value_is_per_life: bool) -> None:
        """Add a decision, after which so many lives are left."""
        if step.crashed:
            raise RuntimeError(f"the environment crashed in continuation {self.number}")
        self.rewards.append(step.reward)
        lost_life = lives < self.lives or (step.terminated and not step.episode_over)
        self.lives = lives
        if self.n_valued is None and lost_life and value_is_per_life:
            self.n_valued = len(self.rewards)
        if step.episode_over:
            self.end = "truncated" if step.truncated else "terminated"


def _read(
    env: Env,
    episode: RecordedEpisode,
    decision: int,
    observation: NDArray[Any],
    reader: Policy,
    states: Path | None,
) -> None:
    """Bring the environment to the decision; a policy with a memory reads every observation before it."""

    def read(t: int, seen: NDArray[Any]) -> None:
        _act(reader, seen[None], [_EPISODE])

    if isinstance(reader, PolicyWithMemory):
        restore(env, episode, decision, observation, watch=read)
    else:
        restore(env, episode, decision, observation, states=states)


def _repeated(
    build: Callable[[], Env], episode: RecordedEpisode, decision: int, n: int
) -> Callable[[], Copies]:
    """Builds n environments and repeats the episode in each."""

    def repeat() -> Copies:
        envs = [build() for _ in range(n)]
        observation = np.empty(envs[0].observation_shape, envs[0].observation_dtype)
        for env in envs:
            restore(env, episode, decision, observation)
        return LocalCopies(envs, observation)

    return repeat


def _play(
    copied: Copies,
    memory: Any,
    actor: Policy,
    plan: BranchPlan,
    first: int,
    value_is_per_life: bool,
) -> list[Continuation]:
    """Play on in copies of one environment; the first of them is continuation number `first`.

    Raises:
        RuntimeError: an environment crashed; the branch has no outcome then.
    """
    games = [_Game(first + k, copied.lives(k)) for k in range(len(copied.observation_N))]
    for game in games:
        if isinstance(actor, PolicyWithMemory):
            actor.remember(game.number, memory)

    def act(acting: Sequence[_Game]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        numbers = [game.number for game in acting]
        return _act(actor, copied.observation_N[[number - first for number in numbers]], numbers)

    going = games
    for t in range(plan.horizon):
        action_N, _, _ = act(going)
        if t == 0 and plan.first_action is not None:
            action_N = np.full_like(action_N, plan.first_action)
        steps = copied.step([game.number - first for game in going], action_N)
        for game, step in zip(going, steps, strict=True):
            game.add(step, copied.lives(game.number - first), value_is_per_life=value_is_per_life)
        going = [game for game in going if game.end is None]
        if not going:
            break
    bootstrapped = [game for game in games if game.n_valued is None and game.end != "terminated"]
    last_values: dict[int, float] = {}
    if bootstrapped:
        _, value_N, _ = act(bootstrapped)
        last_values = dict(zip((game.number for game in bootstrapped), value_N.tolist(), strict=True))
    for game in games:
        if isinstance(actor, PolicyWithMemory):
            actor.forget(game.number)
    return [
        Continuation(
            rewards=game.rewards,
            end=game.end or "horizon",
            n_valued=len(game.rewards) if game.n_valued is None else game.n_valued,
            last_value=last_values.get(game.number),
        )
        for game in games
    ]


def _act(
    policy: Policy, observation_N: NDArray[Any], numbers: Sequence[int]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    return policy.act(observation_N, np.array(numbers))
