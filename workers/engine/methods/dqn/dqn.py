"""DQN (Mnih et al. 2015, Algorithm 1): deep Q-learning with experience replay and a target network.

Actor and learner take turns in one process, so a run is deterministic. The actor takes
`agent_steps_per_update` decisions, epsilon-greedily by Q(s, .; theta), and stores them in the replay memory
D. Then the learner samples a minibatch from D uniformly and minimises

    (y - Q(s, a; theta))^2,   y = r + gamma max_a' Q(s', a'; theta_minus),   y = r where s' is terminal

with the error y - Q clipped to ±1, by centred RMSProp. Every N updates theta_minus <- theta. epsilon is
annealed from 1 over `exploration_anneal_agent_steps`. On a CPU, `learner_threads` threads share the
minibatch, and then the parameters that the optimizer updates.

Differences from the paper:
- The first update is made after `learning_starts_agent_steps` decisions, as there. Until then the actor
  explores with its annealed epsilon; the paper's has a uniform random policy.
- A truncated episode (`max_frames` or a time limit) does not count as terminal. A lost life counts as
  terminal only if the environment is configured so; the paper's code does so in training.
- A replay memory larger than 256 MB is not stored with checkpoints. After a resume it is refilled by the
  current policy before learning continues.
- Observations differ as listed in `workers.engine.envs.atari`, initial weights as listed in
  `workers.engine.nn.networks`.
- With `centre`, off by default, observations are centred by the mean image of random play before training
  (`workers.engine.methods.random_play`). Its decisions are counted as frames, not as agent steps.
"""

from typing import Any

import numpy as np
import torch

from backend.specs.algorithms.dqn import DqnConfig
from backend.specs.algorithms.replayed import CHECKPOINTED_REPLAY_BYTES, ReplayedQConfig
from backend.specs.run import RunSpec
from workers.engine.envs import make_env
from workers.engine.envs.base import Env
from workers.engine.methods.base import (
    Method,
    Policy,
    Samples,
    StepResult,
    check_network,
    config_of,
    gradient_norms,
)
from workers.engine.methods.dqn.actor import DqnActor, take_samples
from workers.engine.methods.dqn.learner import DqnNetworks, create_optimizer
from workers.engine.methods.random_play import RandomPlay, centre
from workers.engine.nn.devices import Acceleration, describe, resolve_device
from workers.engine.nn.networks import ActionValues, action_values
from workers.engine.nn.optimizers import load_kernels
from workers.engine.nn.policies import EpsilonGreedyPolicy
from workers.engine.nn.replay import ReplayMemory
from workers.engine.nn.schedules import annealed
from workers.engine.nn.seeds import MINIBATCH_STREAM, restore_rng, rng_state
from workers.engine.processes.phases import COMPILING, enter_phase

REPLAY_NOT_RESTORED = (
    "the replay memory was not stored with the checkpoint: it is refilled before learning continues"
)
"""Warning after a resume without a replay memory."""
REPLAY_NOT_STORED = (
    "the replay memory is larger than 256 MB and no longer stored with checkpoints: "
    "after a resume it is refilled before learning continues"
)
"""Warning while training if the replay memory cannot be stored."""


def network(config: ReplayedQConfig, env: Env) -> ActionValues:
    """The network of a run."""
    n_actions = len(env.action_names)
    return action_values(config.network, env.observation_shape, n_actions, centre=config.centre)


def policy(network: ActionValues, device: torch.device, seed: int) -> Policy:
    """The epsilon-greedy policy that is evaluated."""
    return EpsilonGreedyPolicy(network, device, seed)


class DqnLearner(DqnNetworks):
    """A DQN agent; see `workers.engine.methods.base.Learner`.

    For a variant with another target, such as double DQN's, subclass it and override `targets`.
    """

    config: DqnConfig
    n_rollout_workers: int | None = None

    def __init__(
        self, spec: RunSpec, *, restored: bool = False, acceleration: Acceleration | None = None
    ) -> None:
        """Start the run.

        Args:
            spec: the run.
            restored: whether `restore` follows.
            acceleration: see `DqnNetworks`.
        """
        c = config_of(spec, DqnConfig)
        self._spec = spec
        device = resolve_device(spec.device)
        self.device = describe(device)
        env = make_env(spec.environment, spec.environment_config)
        env.close()
        self.action_names = env.action_names
        torch.manual_seed(spec.seed)
        threads = c.learner_threads if device.type == "cpu" else 1
        super().__init__(
            c,
            env.observation_shape,
            len(env.action_names),
            device,
            threads=threads,
            acceleration=acceleration,
        )
        self._optimizers = [create_optimizer(part, c) for part in self.theta.tensor_split(threads)]
        enter_phase(COMPILING)
        load_kernels(self.theta)
        self.updates = 0
        self.agent_steps = 0
        self.actor = DqnActor(spec, 0, self.network, acceleration=acceleration)
        self.replay = ReplayMemory(self.actor.shape, c.replay_capacity)
        self._rng = np.random.default_rng(np.random.SeedSequence((spec.seed, MINIBATCH_STREAM)))
        self._warned_not_stored = False
        self.random_play: RandomPlay = centre(self.network, spec, restored=restored)
        self.theta_minus.copy_(self.theta)
        self._refilling = False
        """Whether it was restored without its replay memory and has not warned yet."""

    def advance(self, progress: float, *, watched: bool) -> StepResult:
        """`agent_steps_per_update` decisions and, once the replay memory holds enough, one update."""
        self.actor.play.set_live(watched)
        result = StepResult(agent_steps=self.config.agent_steps_per_update, frames=0, updates=0)
        for _ in range(self.config.agent_steps_per_update):
            self.act(result)
        self.replay.add(self.actor.trajectory.take_chunk())
        result.metrics["replay/fill"] = self.replay.fill
        if self.replay.holds(self.config.learning_starts_agent_steps):
            self.update(result)
        if (frame := self.actor.play.take_frame()) is not None:
            result.live_frames.append(frame)
        result.info = self.actor.play.take_info()
        self._warn(result)
        return result

    def samples(self) -> Samples:
        """The latest actions with max Q of their states, and the gradients of the latest update."""
        return take_samples(self.actor.recent) | (gradient_norms(self.network) if self.updates else {})

    def settle(self, progress: float) -> StepResult:
        """Nothing: the agent does not act between two calls of `advance`."""
        return StepResult(0, 0, 0)

    def act(self, result: StepResult) -> None:
        """Take one decision, and add it to `result`."""
        c = self.config
        epsilon = annealed(1.0, c.exploration_eps, self.agent_steps, c.exploration_anneal_agent_steps)
        finished = self.actor.act(epsilon)
        self.agent_steps += 1
        result.metrics["exploration/epsilon"] = epsilon
        result.frames += self.actor.frames
        if finished is not None:
            result.episodes.append(finished)

    def update(self, result: StepResult) -> None:
        """Update theta by the gradient on one minibatch, see `compute_gradient`, and add it to `result`."""
        self.sync_target(self.updates)
        batch = self.replay.sample(self.config.batch_size, self._rng)
        if batch is None:
            return
        result.metrics |= self.compute_gradient(batch)
        self._in_threads(self._step_optimizer, range(len(self._optimizers)))
        self.updates += 1
        result.metrics["optim/learning_rate"] = self.config.learning_rate
        result.updates = 1

    def _step_optimizer(self, k: int) -> None:
        """Apply part k of the gradient to part k of theta."""
        dtheta = self.dtheta.tensor_split(len(self._optimizers))[k]
        self._optimizers[k].step(dtheta, self.config.learning_rate)

    def _warn(self, result: StepResult) -> None:
        if self._refilling:
            self._refilling = False
            result.warnings.append(REPLAY_NOT_RESTORED)
        if not self._warned_not_stored and self.replay.bytes_filled > CHECKPOINTED_REPLAY_BYTES:
            self._warned_not_stored = True
            result.warnings.append(REPLAY_NOT_STORED)

    def change(self, config: DqnConfig) -> None:
        """Continue with this config."""
        self.config = config

    def policy(self, seed: int) -> Policy:
        """The current policy."""
        return policy(self.network, self.torch_device, seed)

    def state(self) -> dict[str, Any]:
        """Parameters, optimizer, target network, actor, random state and replay memory."""
        stored = self.replay.bytes_filled <= CHECKPOINTED_REPLAY_BYTES
        parts = [optimizer.statistics() for optimizer in self._optimizers]
        return {
            "theta": self.theta.cpu().clone(),
            "optimizer": {name: torch.cat([part[name] for part in parts]).cpu() for name in parts[0]},
            "updates": self.updates,
            "target": {"theta_minus": self.theta_minus.cpu().clone(), "synced_at": self.synced_at},
            "actor": self.actor.state(),
            "rng": rng_state(self._rng, self._spec.seed),
            "agent_steps": self.agent_steps,
            "replay": {name: torch.from_numpy(array) for name, array in self.replay.state().items()}
            if stored
            else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`; an optimizer of another kind takes over the statistics it has in common.

        Raises:
            ValueError: the state is of another network.
        """
        check_network(len(state["theta"]), len(self.theta))
        self.updates = state["updates"]
        self.theta.copy_(state["theta"])
        for name, vector in state["optimizer"].items():
            parts = vector.tensor_split(len(self._optimizers))
            for optimizer, part in zip(self._optimizers, parts, strict=True):
                if name in optimizer.statistics():
                    optimizer.statistics()[name].copy_(part)
        self.theta_minus.copy_(state["target"]["theta_minus"])
        self.synced_at = state["target"]["synced_at"]
        self.actor.restore(state["actor"])
        restore_rng(self._rng, state["rng"], self._spec.seed)
        self.agent_steps = state["agent_steps"]
        if state["replay"] is not None:
            self.replay.restore({name: tensor.numpy() for name, tensor in state["replay"].items()})
        self._refilling = state["replay"] is None

    def close(self) -> None:
        """Close the environment."""
        self.actor.close()


METHOD = Method(DqnLearner, network, policy)
