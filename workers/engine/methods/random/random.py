"""The random agent: each action is uniformly random, whatever is observed (Mnih et al. 2015, methods).

A discrete action is one of A with probability 1 / A. A continuous one is uniform within its bounds, each of
its D numbers by itself. A decision is the environment's: the action is held for its action repeat. In Atari
games, of 60 frames a second, an action repeat of 6 is the paper's 10 Hz: a new action every sixth frame.

Nothing is learned. A run plays its agent steps in one environment, then it is evaluated and stored as any
other. theta, which a checkpoint has to hold, is the parameters of the distribution: A logits, all 0, or the
bounds of the D numbers. No action is better than another, so the greedy agent of a protocol is random too.

Differences from the paper: none at an action repeat of 6. The paper's random agent also chose at 60 Hz, which
is an action repeat of 1.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from backend.specs.algorithms.random import RandomConfig
from backend.specs.run import RunSpec
from workers.engine.envs import Box
from workers.engine.envs.base import ActionSpace, Env
from workers.engine.methods.base import RECORDED, Method, Policy, Samples, StepResult, check_network
from workers.engine.methods.episode_runner import EpisodeRunner
from workers.engine.methods.random_play import RandomPlay, random_actions
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.nn.seeds import ACTION_STREAM, restore_rng, rng_state


class UniformActions(nn.Module):
    """The uniform distribution over an action space, as the network of an agent."""

    def __init__(self, space: ActionSpace) -> None:
        """Set the parameters.

        Raises:
            ValueError: a number of the action has no bounds.
        """
        super().__init__()
        self.space = space
        if isinstance(space, Box):
            bounds_2D = torch.tensor([space.low, space.high])
            if not bounds_2D.isfinite().all():
                raise ValueError(f"a random action needs bounds: the action space is {space}")
            self.bounds_2D = nn.Parameter(bounds_2D)
        else:
            self.logits_A = nn.Parameter(torch.zeros(space.n))


def network(config: RandomConfig, env: Env) -> UniformActions:
    """The distribution of a run's actions."""
    return UniformActions(env.action_space)


class UniformPolicy:
    """Uniformly random actions."""

    def __init__(self, space: ActionSpace, rng: np.random.Generator) -> None:
        self._space = space
        self._rng = rng

    def act(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Actions (N,), zeros (N,) and pi (N, A); if actions are continuous, the action (N, D) itself for pi:
        no density is higher than its own."""
        N = len(observation_N)
        action_N: NDArray[Any] = random_actions(self._space, N, self._rng)
        value_N = np.zeros(N, np.float32)
        if isinstance(self._space, Box):
            return action_N, value_N, action_N
        return action_N, value_N, np.full((N, self._space.n), 1 / self._space.n, np.float32)

    def outputs(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Logits or the means of a continuous action (N, A), and zeros (N,)."""
        N = len(observation_N)
        if isinstance(self._space, Box):
            mean_D = np.mean([self._space.low, self._space.high], axis=0, dtype=np.float32)
            return np.tile(mean_D, (N, 1)), np.zeros(N, np.float32)
        return np.zeros((N, self._space.n), np.float32), np.zeros(N, np.float32)

    def forget(self, environment: int) -> None:
        """It has no memory."""


def policy(network: UniformActions, device: torch.device, seed: int) -> Policy:
    """The random policy."""
    return UniformPolicy(network.space, np.random.default_rng(seed))


class RandomLearner:
    """A random agent in one environment; see `workers.engine.methods.base.Learner`."""

    device = "cpu"
    n_rollout_workers: int | None = None
    random_play = RandomPlay()

    def __init__(self, spec: RunSpec, *, restored: bool = False) -> None:
        """Start the run; `restored` changes nothing."""
        self._seed = spec.seed
        self.play = EpisodeRunner(spec, RECORDED, recorded=True)
        env = self.play.env
        self.action_names = env.action_names
        self.network = UniformActions(env.action_space)
        self._theta = FlatParameters(self.network).theta
        self._rng = np.random.default_rng(np.random.SeedSequence((spec.seed, ACTION_STREAM)))
        self._policy = UniformPolicy(env.action_space, self._rng)
        self.play.reset()

    def advance(self, progress: float, *, watched: bool) -> StepResult:
        """Take one decision."""
        play = self.play
        play.set_live(watched)
        [action], [value], [policy_A] = self._policy.act(play.observation, np.zeros(1, np.int64))
        step = play.step(action, float(value), policy_A)
        result = StepResult(agent_steps=1, frames=step.frames, updates=0, info=play.take_info())
        if (frame := play.take_frame()) is not None:
            result.live_frames.append(frame)
        if play.finished is not None:
            result.episodes.append(play.finished)
            play.reset()
        return result

    def samples(self) -> Samples:
        """Nothing: its actions are uniform, and it neither values states nor learns."""
        return {}

    def settle(self, progress: float) -> StepResult:
        """Nothing: the agent does not act between two calls of `advance`."""
        return StepResult(0, 0, 0)

    def change(self, config: RandomConfig) -> None:
        """Nothing: no setting is of the agent."""

    def policy(self, seed: int) -> Policy:
        """The random policy with its own random numbers."""
        return policy(self.network, self._theta.device, seed)

    def state(self) -> dict[str, Any]:
        """The distribution's parameters, random numbers and the current episode."""
        return {
            "theta": self._theta.clone(),
            "rng": rng_state(self._rng, self._seed),
            "play": self.play.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue in the middle of an episode; begin the next one if the environment has changed.

        Raises:
            ValueError: the state is of another action space.
        """
        check_network(len(state["theta"]), len(self._theta))
        restore_rng(self._rng, state["rng"], self._seed)
        if not self.play.restore(state["play"]):
            self.play.reset()

    def close(self) -> None:
        """Close the environment."""
        self.play.close()


METHOD = Method(RandomLearner, network, policy)
