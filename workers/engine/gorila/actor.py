"""A Gorila actor: plays one world epsilon-greedily by its replica's theta."""

from typing import Any

import numpy as np
import torch

from backend.specs.algorithms.replayed import ReplayedQConfig
from backend.specs.environments.atari import AtariConfig
from backend.specs.run import RunSpec
from workers.engine.envs.base import World
from workers.engine.gorila.replica import Replica
from workers.engine.learner import EpisodeEnd
from workers.engine.play import Play
from workers.engine.replay import Shape, Trajectory
from workers.engine.seeds import restore_rng, rng_state

RECORDED = 0
"""The actor whose episodes are recorded and can be watched."""
_ACTIONS = 2**30
"""Stream of the random numbers actions are drawn with, apart from every actor's episodes."""


def shape_of(spec: RunSpec, world: World) -> Shape:
    """What a run's observations are made of."""
    stack = world.observation_shape[-1] if isinstance(spec.environment_config, AtariConfig) else 1
    return Shape(world.observation_shape, world.observation_dtype.name, stack)


class Actor:
    """One actor; its experience is in `trajectory`."""

    def __init__(
        self, spec: RunSpec, number: int, replica: Replica, *, whole: bool, episodes_begun: int = 0
    ) -> None:
        """Begin an episode.

        Args:
            spec: the run.
            number: which actor of the run.
            replica: theta, which others keep fresh.
            whole: whether chunks of its trajectory must stand by themselves.
            episodes_begun: by this actor, in earlier processes; their seeds are not used again.
        """
        assert isinstance(spec.config, ReplayedQConfig)
        self._clip = spec.config.reward_clip
        self._replica = replica
        self.play = Play(spec, number, recorded=number == RECORDED)
        self._recorded = number == RECORDED
        self.play.episodes_begun = episodes_begun
        self._seed = spec.seed
        self._rng = np.random.default_rng(
            np.random.SeedSequence((spec.seed, _ACTIONS + number, episodes_begun))
        )
        self._n_actions = len(self.play.world.action_names)
        self.shape = shape_of(spec, self.play.world)
        self.trajectory = Trajectory(self.shape, whole=whole)
        self.frames = 0
        """Emulator frames that its last decision took."""
        self._begin()

    def act(self, epsilon: float) -> EpisodeEnd | None:
        """Take one decision; the episode, where it ends."""
        play = self.play
        self.trajectory.see(play.observation[0])
        action, value, q_A = self._choose(epsilon)
        step = play.step(action, value, q_A)
        self.frames = step.frames
        clip = self._clip
        reward = min(max(step.reward, -clip), clip) if clip else step.reward
        if step.crashed:
            # What it led to is not known: seen, not decided.
            self._begin()
            return play.finished
        self.trajectory.decide(action, reward, terminal=step.terminal)
        if not step.ended:
            return None
        finished = play.finished
        if not step.terminal:
            self.trajectory.see(play.observation[0])
        self._begin()
        return finished

    def state(self) -> dict[str, Any]:
        """Where it is: plain values."""
        return {
            "rng": rng_state(self._rng, self._seed),
            "play": self.play.state(),
            "trajectory": self.trajectory.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on in the middle of an episode, or begin the next where the world goes another way by now."""
        restore_rng(self._rng, state["rng"], self._seed)
        self.trajectory.restore(state["trajectory"])
        if not self.play.restore(state["play"]):
            self._begin()

    def close(self) -> None:
        """Close the world."""
        self.play.close()

    def _choose(self, epsilon: float) -> tuple[int, float, np.ndarray[Any, Any]]:
        random = self._rng.random() < epsilon
        if random and not self._recorded:
            # No replay asks what it thought.
            return int(self._rng.integers(self._n_actions)), 0.0, np.zeros(self._n_actions, np.float32)
        with torch.inference_mode():
            observation = torch.from_numpy(self.play.observation).to(self._replica.device)
            q_A = np.asarray(self._replica.network(observation)[0].cpu())
        action = int(self._rng.integers(self._n_actions)) if random else int(q_A.argmax())
        return action, float(q_A.max()), q_A

    def _begin(self) -> None:
        self.play.begin()
        self.trajectory.begin()
