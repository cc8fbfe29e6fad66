"""Restores the environment of a recorded episode as it was before one of its decisions.

An episode is a seed and a list of actions: any of its states is reached by repeating the actions before it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.specs.environments import ENVIRONMENTS
from backend.specs.play import PlaySetup
from backend.specs.protocols import starts_protocol
from backend.specs.run import RunSpec
from workers.engine.envs import Env, Step, env_config, make_env

Watch = Callable[[int, NDArray[Any]], None]
"""Called with the number of a decision, from 0, and the observation before it."""


class ReplayMismatchError(RuntimeError):
    """Repeating a replay gave other rewards: another emulator version, an environment that does not follow
    its seed, or a damaged file."""


@dataclass(frozen=True)
class RecordedEpisode:
    """What is needed to repeat an episode."""

    seed: int
    actions: NDArray[Any]
    """(T,) indices of discrete actions, or (T, D)."""
    rewards: NDArray[Any]
    """(T,), true rewards."""

    def repeat(self, env: Env, t: int, observation: NDArray[Any]) -> Step:
        """Take the decision `t` again, and compare its reward.

        Args:
            env: the environment, as it was before the decision.
            t: number of the decision, from 0.
            observation: where to write the observation after it.

        Raises:
            ReplayMismatchError: the reward differs from the recorded one.
        """
        return repeat(env, t, self.actions[t], self.rewards[t], observation)


def repeat(env: Env, t: int, action: Any, reward: float | np.float32, observation: NDArray[Any]) -> Step:
    """Take a recorded decision again, and compare its reward.

    Args:
        env: the environment, as it was before the decision.
        t: number of the decision, from 0.
        action: the recorded one.
        reward: the recorded one.
        observation: where to write the observation after it.

    Raises:
        ReplayMismatchError: the reward differs from the recorded one, or the environment crashed.
    """
    step = env.step(action, observation)
    if step.crashed:
        raise ReplayMismatchError(f"the environment crashed in decision {t}")
    if step.reward != reward:
        raise ReplayMismatchError(
            f"decision {t} gave reward {step.reward}, but {reward} was recorded: "
            "the emulator's version differs, the environment does not follow its seed, or the replay is "
            "damaged"
        )
    return step


def repeat_within(
    env: Env, t: int, action: Any, reward: float | np.float32, observation: NDArray[Any]
) -> Step:
    """Take a recorded decision again after which the episode went on.

    Raises:
        ReplayMismatchError: the reward differs from the recorded one, the environment crashed, or the
            episode is over.
    """
    step = repeat(env, t, action, reward, observation)
    if step.episode_over:
        raise ReplayMismatchError(f"the episode is over after decision {t}: it has no later state")
    return step


def restore(
    env: Env,
    episode: RecordedEpisode,
    decision: int,
    observation: NDArray[Any],
    *,
    watch: Watch | None = None,
    states: Path | None = None,
) -> int:
    """Bring an environment to the state of an episode before a decision.

    Args:
        env: built with the settings of the episode, and with its starts if it has some.
        episode: the episode.
        decision: number of decisions before the state; 0: the episode's first state.
        observation: where to write the observation of that state.
        watch: called before each decision that is repeated, such as to carry a recurrent agent's state.
        states: file of the episode's emulator states: only the decisions since the latest one are repeated.
            None: all are.

    Returns:
        The emulator frames of all decisions before the state.

    Raises:
        ReplayMismatchError: the episode went another way than recorded.
        ValueError: the episode has fewer decisions.
    """
    if not 0 <= decision <= len(episode.actions):
        raise ValueError(f"the episode has {len(episode.actions)} decisions, and no state {decision}")
    first, frames = (0, 0) if states is None else _restore_latest(env, states, decision, observation)
    if first == 0:
        env.reset(episode.seed, observation)
    for t in range(first, decision):
        if watch is not None:
            watch(t, observation)
        frames += repeat_within(env, t, episode.actions[t], episode.rewards[t], observation).frames
    return frames


def _restore_latest(env: Env, states: Path, decision: int, observation: NDArray[Any]) -> tuple[int, int]:
    """Return to the latest of an Atari episode's emulator states before a decision.

    Returns:
        The decisions and the emulator frames before it; 0 if there is none.
    """
    from workers.engine.envs.atari import AtariEnv
    from workers.engine.training.emulator_states import latest_before

    state = latest_before(states, decision)
    if state is None or not isinstance(env, AtariEnv):
        return 0, 0
    env.restore_snapshot(state.snapshot, observation)
    return state.decision, state.frames


def environment_of_episode(spec: RunSpec, replay: Path, starts: Path | None) -> tuple[Env, RecordedEpisode]:
    """The environment of a run's episode, as it was configured there, and the episode.

    Args:
        spec: the run's specification.
        replay: an .npz written by `EpisodeRecorder.save`.
        starts: file of the start set of the replay's protocol; None if it has no set.

    Raises:
        ValueError: the starts are missing.
    """
    with np.load(replay, allow_pickle=False) as data:
        episode = RecordedEpisode(int(data["seed"]), data["actions"], data["rewards"])
        protocol = str(data["protocol"]) or None  # none: a training episode
    has_set = protocol is not None and starts_protocol(protocol) is not None
    if has_set and starts is None:
        raise ValueError(f"the replay starts from a point of {protocol}, whose states are missing")
    return make_env(spec.environment, env_config(spec, protocol), starts if has_set else None), episode


def environment_of_game(setup: PlaySetup, replay: Path) -> tuple[Env, RecordedEpisode]:
    """The environment of a game that a person has played, and the game.

    Args:
        setup: of its session.
        replay: the recording as an .npz file.

    Raises:
        ReplayMismatchError: the game was played with another ROM.
    """
    config = ENVIRONMENTS[setup.environment].config.model_validate(setup.environment_config)
    with np.load(replay, allow_pickle=False) as data:
        episode = RecordedEpisode(int(data["seed"]), data["actions"], data["rewards"])
        check_rom(setup.environment, str(data["rom_sha256"]) or None)
    return make_env(setup.environment, config), episode


def check_rom(environment: str, sha256: str | None) -> None:
    """Check that this host has the ROM with which a game was played.

    Raises:
        ReplayMismatchError: it has another one.
    """
    if not environment.startswith("ALE/"):
        return
    from workers.engine.envs.atari import rom_sha256

    if sha256 != rom_sha256(environment):
        raise ReplayMismatchError("the game was played with another ROM than this host has")
