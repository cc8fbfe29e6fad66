"""An actor of DQN or Gorila: acts in one environment, epsilon-greedily by Q(s, .; theta).

Separate from `dqn`, because Gorila has many actors and a loop of its own.
"""

from collections import deque
from typing import Any

import numpy as np
import torch

from backend.specs.algorithms.replayed import ReplayedQConfig
from backend.specs.run import RunSpec
from workers.engine.envs.base import Env
from workers.engine.methods.base import RECORDED, EpisodeEnd, Samples, clipped, config_of
from workers.engine.methods.episode_runner import EpisodeRunner
from workers.engine.nn.devices import Acceleration, acceleration_on
from workers.engine.nn.host_forward import HostForward
from workers.engine.nn.networks import ActionValues
from workers.engine.nn.replay import FrameShape, Trajectory
from workers.engine.nn.seeds import ACTION_STREAM, restore_rng, rng_state

N_RECENT = 1_000


def frame_shape(spec: RunSpec, env: Env) -> FrameShape:
    """How a run's observations are composed of frames."""
    stack = env.observation_shape[-1] if spec.environment_config.stacks_frames else 1
    return FrameShape(env.observation_shape, env.observation_dtype.name, stack)


def recent_decisions() -> deque[tuple[int, float]]:
    """Room for the latest actions, and max Q of their states."""
    return deque(maxlen=N_RECENT)


def take_samples(recent: deque[tuple[int, float]]) -> Samples:
    """The decisions of `recent` for histograms; it is empty afterwards."""
    actions, values = zip(*recent, strict=True) if recent else ((), ())
    recent.clear()
    return {"policy/actions": np.array(actions, np.int64), "policy/values": np.array(values)}


class DqnActor:
    """One actor; its experience is in `trajectory`."""

    def __init__(
        self,
        spec: RunSpec,
        number: int,
        network: ActionValues,
        *,
        independent_chunks: bool = False,
        episodes_begun: int = 0,
        acceleration: Acceleration | None = None,
    ) -> None:
        """Build the environment and begin an episode.

        Args:
            spec: the run.
            number: number of the actor in the run, from 0.
            network: Q(s, .; theta), which others update.
            independent_chunks: see `Trajectory`.
            episodes_begun: episodes that this actor began in earlier processes; their seeds are not used
                again.
            acceleration: how a GPU is used; on a CPU, None to read observations where they are.
        """
        self._clip = config_of(spec, ReplayedQConfig).reward_clip  # type: ignore[type-abstract]
        self.network = network
        self._recorded = number == RECORDED
        self.play = EpisodeRunner(spec, number, recorded=self._recorded)
        self.play.episodes_begun = episodes_begun
        self._seed = spec.seed
        self._rng = np.random.default_rng(
            np.random.SeedSequence((spec.seed, ACTION_STREAM + number, episodes_begun))
        )
        self._n_actions = len(self.play.env.action_names)
        device = next(network.parameters()).device
        acceleration = acceleration_on(device, acceleration)
        self._forward: HostForward | None = None
        if acceleration is not None:
            env = self.play.env
            self._forward = HostForward(
                lambda state_B: (network(state_B),),
                (1,),
                env.observation_shape,
                env.observation_dtype,
                device,
                graphs=acceleration.graphs,
            )
        self.shape = frame_shape(spec, self.play.env)
        self.trajectory = Trajectory(self.shape, independent_chunks=independent_chunks)
        self.frames = 0
        """Emulator frames of its last decision."""
        self.recent = recent_decisions()
        self._begin_episode()

    def act(self, epsilon: float) -> EpisodeEnd | None:
        """Take one decision; returns the episode if it ended."""
        play = self.play
        self.trajectory.add_observation(play.observation[0])
        action, value, q_A = self.choose(epsilon)
        self.recent.append((action, value))
        step = play.step(action, value, q_A)
        self.frames = step.frames
        finished = play.finished
        if step.crashed:
            # The next state is unknown: there is no transition.
            self._begin_episode()
            return finished
        self.trajectory.add_transition(action, clipped(step.reward, self._clip), terminal=step.terminated)
        if not step.episode_over:
            return None
        if not step.terminated:
            self.trajectory.add_observation(play.observation[0])
        self._begin_episode()
        return finished

    def state(self) -> dict[str, Any]:
        """Plain values for `restore`."""
        return {
            "rng": rng_state(self._rng, self._seed),
            "play": self.play.state(),
            "trajectory": self.trajectory.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue in the middle of an episode; begin the next one if the environment has changed."""
        restore_rng(self._rng, state["rng"], self._seed)
        self.trajectory.restore(state["trajectory"])
        if not self.play.restore(state["play"]):
            self._begin_episode()

    def close(self) -> None:
        """Close the environment."""
        self.play.close()

    def choose(self, epsilon: float) -> tuple[int, float, np.ndarray[Any, Any]]:
        """An action, max Q and Q (A,) for the current state; Q is 0 where it is neither used nor recorded."""
        random = self._rng.random() < epsilon
        if random and not self._recorded:
            # Only recorded episodes show Q.
            return int(self._rng.integers(self._n_actions)), 0.0, np.zeros(self._n_actions, np.float32)
        if self._forward is not None:
            self._forward.observation_B[0] = self.play.observation[0]
            [q_BA] = self._forward(1)
            q_A = q_BA[0].copy()
        else:
            with torch.inference_mode():
                q_A = self.network(torch.from_numpy(self.play.observation))[0].numpy()
        action = int(self._rng.integers(self._n_actions)) if random else int(q_A.argmax())
        return action, float(q_A.max()), q_A

    def _begin_episode(self) -> None:
        self.play.reset()
        self.trajectory.begin_episode()
