"""A rollout worker of PAAC's framework: the rollout of some environments, and their part of each gradient.

Read this; `workers.engine.methods.paac.gpu_rollout` computes the same on a GPU, faster.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.specs.algorithms.synchronous import SynchronousConfig
from backend.specs.run import RunSpec
from workers.engine.envs.info import Totals
from workers.engine.envs.vector import FinishedEpisode, VectorEnv
from workers.engine.methods.base import RECORDED, EpisodeEnd, Samples
from workers.engine.methods.paac.method import RolloutBatch, RolloutContext, RolloutFactories, Slice
from workers.engine.methods.recording import EpisodeRecorder
from workers.engine.nn.autograd import create_unroll
from workers.engine.nn.devices import to_device
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.nn.seeds import EpisodeSeeds


class Timings(NamedTuple):
    """How a rollout's time was spent."""

    environment_s: float = 0.0
    choosing_s: float = 0.0
    learning_s: float = 0.0


@dataclass(slots=True)
class RolloutResult:
    """What a worker adds to the sums over the whole batch."""

    frames: int = 0
    episodes: list[EpisodeEnd] = field(default_factory=list)
    spent: Timings = field(default_factory=Timings)
    metrics: dict[str, float] = field(default_factory=dict)
    """Metric of the first gradient -> this worker's part of its mean over the batch."""
    info: Totals = field(default_factory=dict)
    """Scalars of a custom environment's `info`."""
    epsilon_B: NDArray[np.float64] | None = None
    """epsilon of each environment, if the method explores epsilon-greedily."""
    live_frames: list[bytes] = field(default_factory=list)
    """JPEGs of the recorded environment, while a viewer watches."""
    dtheta: Any = None
    """(P,) gradient of the batch's mean loss through this worker's decisions; None in a message."""
    grad_norm: float | None = None
    """Mean norm of the gradients before clipping, if the worker made all updates, of which `metrics` are then
    means; None: the learner makes them."""


class Outcomes(NamedTuple):
    """What the environments answered to the decisions of a rollout."""

    reward_TB: NDArray[np.float32]
    ended_TB: NDArray[np.bool_]
    """As of `RolloutBatch`."""
    crashed_TB: NDArray[np.bool_]


class RolloutWorker:
    """Acts in its environments for t_max decisions, and leaves its part of a gradient in `flat.dtheta`."""

    def __init__(
        self,
        spec: RunSpec,
        factories: RolloutFactories,
        environments: Slice,
        network: Any,
        flat: FlatParameters,
        theta_minus: Tensor,
        *,
        processes: int,
        groups: int = 1,
    ) -> None:
        self._config: SynchronousConfig = factories.config_of(spec)
        self._unroll = create_unroll(
            network.body, None, dtype=torch.bfloat16 if self._config.precision == "bf16" else None
        )
        self._flat = flat
        self._device = flat.theta.device
        first, last = environments
        self._B = last - first
        self._recorded = RECORDED - first
        self._records = first <= RECORDED < last
        self._seed = spec.seed
        self._seeds = EpisodeSeeds(spec.seed, range(first, last))
        self._env = VectorEnv(
            spec,
            environments=self._B,
            processes=processes,
            slots=1,
            next_seed=self._seeds.next,
            groups=groups,
            with_info=True,
        )
        self._generator = torch.Generator(self._device).manual_seed(spec.seed * 1_000_003 + first)
        self._algorithm = factories.algorithm(
            RolloutContext(self._config, network, theta_minus, self._unroll, environments, self._generator)
        )
        self._gradients: Iterator[dict[str, Tensor]] = iter(())
        self._share = 0.0
        self._latest: tuple[Tensor, ...] | None = None
        """Actions, values, rewards, ends and bootstrapped values of the latest rollout."""
        shared = self._env.shared
        self._observation_TB: Tensor | None = None
        if self._algorithm.keeps_observations:
            newest_B = torch.from_numpy(shared.observation_SB[0])
            shape = (self._config.t_max, *newest_B.shape)
            self._observation_TB = newest_B.new_empty(shape, device=self._device)
        self._no_action = np.zeros_like(shared.action_B[0]).tolist()
        self._recorder: EpisodeRecorder | None = EpisodeRecorder()
        replayable = spec.catalogue_environment.replayable
        self._taken: list[list[Any]] | None = [[] for _ in range(self._B)] if replayable else None
        self._frames, self._progress = 0, 0.0
        self._env.reset()

    def wait_ready(self) -> None:
        """Its environments are built already."""

    def begin(self, frames: int, progress: float, *, watched: bool) -> None:
        """Prepare a rollout, which `finish` does.

        Args:
            frames: the run's so far.
            progress: as of `Learner.advance`.
            watched: as of `Learner.advance`.
        """
        self._frames, self._progress = frames, progress
        self._env.watch(self._recorded if watched and self._records else None)

    def change(self, config: SynchronousConfig) -> None:
        """Continue with this config."""
        self._config = config
        self._algorithm.change(config)

    def samples(self) -> Samples:
        """Actions, values and advantages of the latest rollout; nothing before it."""
        if self._latest is None:
            return {}
        action_N, value_TB, reward_TB, ended_TB, bootstrap_B = self._latest
        samples = {"policy/actions": action_N, "policy/values": value_TB}
        advantage_TB = self._algorithm.advantages(reward_TB, ended_TB, value_TB, bootstrap_B)
        if advantage_TB is not None:
            samples["policy/advantages"] = advantage_TB
        return {name: values.detach().cpu().numpy() for name, values in samples.items()}

    def finish(self) -> RolloutResult:
        """Lines 4 to 17 of Algorithm 1 for these environments, with the first gradient."""
        c = self._config
        result = self._new_result()
        choices = []
        self._unroll.begin()
        shape, everywhere = (c.t_max, self._B), slice(0, self._B)
        outcomes = Outcomes(np.empty(shape, np.float32), np.empty(shape, np.bool_), np.empty(shape, np.bool_))
        environment_s = choosing_s = 0.0
        for t in range(c.t_max):
            started = time.perf_counter()
            with torch.no_grad():
                features_BF = self._features(self.observation(), t, everywhere)
                choice = self._algorithm.choose(features_BF, everywhere)
            action_B = choice.action_B.cpu().numpy()
            chosen = time.perf_counter()
            finished = self._env.step(action_B, 0)
            stepped = time.perf_counter()
            choosing_s += chosen - started
            environment_s += stepped - chosen
            if self._records:
                value = float(choice.value_B[self._recorded])
                self._record(action_B, value, choice.policy_BA[self._recorded].cpu().numpy())
            self._receive(t, everywhere, action_B, finished, outcomes, result)
            choices.append(choice)
        started = time.perf_counter()
        with torch.no_grad():
            bootstrap_B = self._algorithm.value(self.observation())
        log_pi_TB = [choice.log_pi_B for choice in choices if choice.log_pi_B is not None]
        self._begin_learning(
            torch.cat([choice.action_B for choice in choices]),
            torch.cat(log_pi_TB) if log_pi_TB else None,
            torch.stack([choice.value_B for choice in choices]),
            torch.from_numpy(outcomes.reward_TB).to(self._device),
            torch.from_numpy(outcomes.ended_TB).to(self._device),
            bootstrap_B,
            outcomes.crashed_TB,
        )
        result.metrics = self.finish_gradient()
        result.info = self._env.take_info()
        result.spent = Timings(environment_s, choosing_s, time.perf_counter() - started)
        return result

    def begin_gradient(self) -> None:
        """Prepare the next gradient, which `finish_gradient` computes."""

    def finish_gradient(self) -> dict[str, float]:
        """Compute this worker's part of the next gradient of the rollout.

        Returns:
            Metric -> this worker's part of its mean over the batch.
        """
        return {name: mean.item() * self._share for name, mean in self._next_gradient().items()}

    def _new_result(self) -> RolloutResult:
        epsilon_B = self._algorithm.begin(self._frames, self._progress)
        return RolloutResult(dtheta=self._flat.dtheta, epsilon_B=epsilon_B)

    def _features(self, observation_B: Tensor, t: int, group: slice) -> Tensor:
        """Features of a group's states of decision t, whose activations or observations are kept."""
        if self._observation_TB is None:
            return self._unroll.step(observation_B)
        self._observation_TB[t, group] = observation_B
        return self._unroll.peek(observation_B)

    def _begin_learning(
        self,
        action_N: Tensor,
        log_pi_N: Tensor | None,
        value_TB: Tensor,
        reward_TB: Tensor,
        ended_TB: Tensor,
        bootstrap_B: Tensor,
        crashed_TB: NDArray[np.bool_] | None,
    ) -> None:
        """Start on the gradients of a rollout; None: no environment crashed."""
        self._share = self._B / self._config.n_e
        self._latest = (action_N, value_TB, reward_TB, ended_TB, bootstrap_B)
        kept_N = None
        if crashed_TB is not None and crashed_TB.any():
            kept_N = torch.from_numpy(np.flatnonzero(~crashed_TB)).to(self._device)
            self._share *= len(kept_N) / crashed_TB.size
            if not len(kept_N):
                self._gradients = iter(())
                return
        keeps = self._observation_TB is not None
        batch = RolloutBatch(
            features_NF=None if keeps else self._unroll.features(),
            observation_N=None if self._observation_TB is None else self._observation_TB.flatten(0, 1),
            action_N=action_N,
            log_pi_N=log_pi_N,
            value_TB=value_TB,
            reward_TB=reward_TB,
            ended_TB=ended_TB,
            bootstrap_B=bootstrap_B,
            kept_N=kept_N,
            share=self._share,
        )
        self._gradients = self._algorithm.gradients(batch)

    def _next_gradient(self) -> dict[str, Tensor]:
        """Leave the next gradient in dtheta, and return its metrics; 0 and none after crashes alone."""
        self._flat.dtheta.zero_()
        return next(self._gradients, {})

    def _receive(
        self,
        t: int,
        group: slice,
        action_B: NDArray[Any],
        finished: list[FinishedEpisode],
        outcomes: Outcomes,
        result: RolloutResult,
    ) -> None:
        """Add what the environments of a group answered to decision t.

        Args:
            t: number of the decision in the rollout.
            group: the environments.
            action_B: their actions.
            finished: their episodes that ended.
            outcomes: the rollout's, to which theirs are added.
            result: the worker's, to which episodes, emulator frames and live frames are added.
        """
        shared, clip = self._env.shared, self._config.reward_clip
        reward_B = outcomes.reward_TB[t, group]
        reward_B[:] = shared.reward_B[group]
        if clip:
            np.clip(reward_B, -clip, clip, out=reward_B)
        outcomes.ended_TB[t, group] = shared.terminated_B[group]
        outcomes.crashed_TB[t, group] = shared.crashed_B[group]
        result.frames += int(shared.frames_B[group].sum())
        if (frame := self._env.take_frame()) is not None:
            result.live_frames.append(frame)
        if self._taken is not None:
            self._remember(action_B, group)
        if finished:
            result.episodes += [self._episode_end(episode) for episode in finished]
            self._bootstrap_truncated(group, reward_B, outcomes.ended_TB[t, group])

    def state(self) -> dict[str, Any]:
        """Random state, how many episodes each environment has drawn a seed for (the current one and the next
        among them), and its actions in the current one."""
        state = {
            "generator": self._generator.get_state(),
            "run_seed": self._seed,
            "episodes_begun": list(self._seeds.begun),
        }
        return state if self._taken is None else state | {"actions": [list(taken) for taken in self._taken]}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`: in the same episodes if it has their actions, else in new ones.

        In a run with another seed (a fork) randomness and episodes are new.
        """
        same_seed = state.get("run_seed", self._seed) == self._seed
        if same_seed:
            self._generator.set_state(state["generator"])
        self._seeds.begun = list(state["episodes_begun"])
        if self._taken is None or not same_seed or "actions" not in state:
            self._recorder = EpisodeRecorder()
            self._env.reset()
        else:
            self._replay(state["actions"])

    def close(self) -> None:
        """Close the environments."""
        self._env.close()

    def observation(self) -> Tensor:
        """(B, ...) newest observations on the network's device."""
        return to_device(self._env.shared.observation_SB[0], self._device)

    def _remember(self, action_B: NDArray[Any], group: slice) -> None:
        assert self._taken is not None
        over_B = self._env.shared.episode_over_B[group].tolist()
        for taken, action, is_over in zip(self._taken[group], action_B.tolist(), over_B, strict=True):
            if is_over:
                taken.clear()
            else:
                taken.append(action)

    def _replay(self, actions: list[list[Any]]) -> None:
        """Repeat the actions of the current episodes; the recorded one's recording is lost."""
        # In addition to the current episode's seed, that of the next has been drawn.
        self._seeds.begun = [begun - 2 for begun in self._seeds.begun]
        self._env.reset()
        self._taken = [[] for _ in range(self._B)]
        for t in range(max(map(len, actions))):
            acting_B = np.array([t < len(taken) for taken in actions])
            action_B = np.array([taken[t] if t < len(taken) else self._no_action for taken in actions])
            ended = self._env.step(action_B, 0, acting_B)
            if ended:  # the environment's settings have changed: all begin anew
                self._env.reset()
                self._env.take_info()
                self._taken = [[] for _ in range(self._B)]
                self._recorder = EpisodeRecorder()
                return
        self._env.take_info()  # that is in the metrics already
        self._taken = [list(taken) for taken in actions]
        self._recorder = None if self._records and actions[self._recorded] else EpisodeRecorder()

    def _record(self, action_B: NDArray[Any], value: float, policy_A: NDArray[Any]) -> None:
        """Add a decision of the recorded environment, which has been taken, to its recording."""
        if self._recorder is None:
            return
        shared, i = self._env.shared, self._recorded
        lives = 0 if shared.episode_over_B[i] else int(shared.lives_B[i])
        self._recorder.add(action_B[i], float(shared.reward_B[i]), value, policy_A, lives)
        self._recorder.truncated = bool(shared.truncated_B[i])

    def _episode_end(self, episode: FinishedEpisode) -> EpisodeEnd:
        end = EpisodeEnd(
            source="",
            seed=episode.seed,
            episode_return=episode.episode_return,
            length_steps=episode.length_steps,
            length_frames=episode.length_frames,
            crashed=episode.crashed,
            crash=episode.crash,
        )
        if episode.environment == self._recorded:
            end.recording, self._recorder = self._recorder, EpisodeRecorder()
        return end

    def _bootstrap_truncated(
        self, group: slice, reward_B: NDArray[np.float32], ended_B: NDArray[np.bool_]
    ) -> None:
        """End the returns of a group's episodes that were truncated or crashed, by their last state's value.

        Discounted, it is added to the last reward of a truncated episode. A decision that crashed is dropped:
        the value of its state takes the place of its return.
        """
        shared = self._env.shared
        crashed_B = shared.crashed_B[group]
        truncated_B = (shared.episode_over_B & shared.truncated_B & ~shared.terminated_B)[group]
        cut = np.flatnonzero(truncated_B | crashed_B)
        if len(cut):
            with torch.no_grad():
                last_state = to_device(shared.final_observation_B[group][cut], self._device)
                v = self._algorithm.value(last_state).cpu().numpy()
            reward_B[cut] = np.where(crashed_B[cut], v, reward_B[cut] + self._config.gamma * v)
            ended_B[cut] = True
