"""GA3C: one model with predictors and trainers, and agents without a model (Babaeizadeh et al. 2017).

N_A agents, each with one environment in a process, put their states into a prediction queue. N_P predictors
take all waiting requests and answer them from one forward pass of the network. Agents submit their
experiences, t_max or fewer at the end of an episode, to a training queue; N_T trainers take submissions until
they have `min_training_batch` experiences, and update the one theta by equation 5,

    d theta = sum grad [ log(pi(a|s; theta) + eps) (R - V(s; theta)) + beta H(pi(s; theta) + eps) ]

and the gradient of (R - V(s; theta))^2, with RMSProp, eps inside the root (equation 3). Experiences are some
updates old when they are trained on: the policy lag, which is measured. Every `adjustment_interval_s` one of
N_A, N_P and N_T changes by one (section 4.3; see `workers.engine.methods.ga3c.adjustment`); the run has
claimed memory for the largest N_A.

Differences from the paper:
- With `agents_per_process`, 1 by default, agents share processes. Each has its own environment, segments,
  requests and policy lag; the process steps whichever of its agents has a prediction. If it dies, all of
  them begin new episodes.
- Agents do not send states: these are in shared memory as the bytes the environment gives, and the queues
  carry 6 bytes a request. pi and V are returned the same way.
- Predictors read theta while trainers write it, as in TensorFlow; one trainer at a time takes a step, so
  that no update of g is lost.
- An agent has at most four waiting submissions, which bounds the policy lag. (The paper's queues have a
  bound that it does not print.)
- N_A is adjusted up to `max_adjusted_actors`, 32 by default; the paper states no limit.
- Evaluations start with no-ops unless the protocol `random_seeds` is chosen, so that scores can be compared
  with those of other methods and normalised. The paper's 30 games each have a random seed.
- Rewards are clipped to ±`reward_clip`, as in Mnih et al. 2016.
- RMSProp's g starts at `rmsprop_initial_g`: 0 by default. The paper prints no value; in its authors' code,
  by TensorFlow, it is 1. With an eps of 0.1 the first steps are up to 3.3 times larger here.
- The weight of the value term is `value_coefficient` (1: equation 2; 0.5 in the authors' code).
- A truncated episode is not treated as terminated: it is bootstrapped from its last state.
- A decision in which the environment crashed is dropped; its state is bootstrapped from.
- During evaluations and checkpoints, when theta must not change, predictors and trainers pause and agents
  wait for them.
- With `centre`, off by default, observations are centred by the mean image of random play before training
  (`workers.engine.methods.random_play`). Its decisions are counted as frames, not as agent steps.
"""

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from backend.specs.algorithms.ga3c import MAX_AGENTS, Ga3cConfig
from backend.specs.run import RunSpec
from workers.engine.envs import make_env
from workers.engine.envs.base import Env
from workers.engine.envs.shared import NOT_WATCHED
from workers.engine.methods.base import (
    ADVANCE_S,
    RECORDED,
    Method,
    MetricsGate,
    Policy,
    Samples,
    StepResult,
    check_finite,
    check_network,
    config_of,
)
from workers.engine.methods.ga3c.adjustment import ThreadCounts, ThreadTuning
from workers.engine.methods.ga3c.agent_pool import AgentPool
from workers.engine.methods.ga3c.memory import FRAMES, STEPS, Experiences, ExperienceShape, Queue
from workers.engine.methods.ga3c.model import Model, ModelThread, Predictor, Stats, Trainer
from workers.engine.methods.random_play import RandomPlay, centre
from workers.engine.nn.devices import Acceleration, describe, resolve_device
from workers.engine.nn.networks import ActorCritic, actor_critic
from workers.engine.nn.optimizers import load_kernels
from workers.engine.nn.policies import SampledPolicy
from workers.engine.nn.schedules import learning_rate
from workers.engine.nn.seeds import ADJUSTMENT_STREAM
from workers.engine.processes.phases import COMPILING, enter_phase

_MAX_WAIT_S = 0.02
"""How late the run's limit of agent steps may be noticed."""


def network(config: Ga3cConfig, env: Env) -> ActorCritic:
    """The network of a run."""
    c, shape, n_actions = config, env.observation_shape, len(env.action_names)
    return actor_critic(c.network, shape, n_actions, first_layer_stride=c.first_layer_stride, centre=c.centre)


def policy(network: ActorCritic, device: torch.device, seed: int) -> Policy:
    """The policy that is evaluated: samples from pi."""
    return SampledPolicy(network, device, seed)


class Ga3cLearner:
    """Trains a run by GA3C; see `workers.engine.methods.base.Learner`."""

    n_rollout_workers: int | None = None

    def __init__(
        self, spec: RunSpec, *, restored: bool = False, acceleration: Acceleration | None = None
    ) -> None:
        """Start what the run needs.

        Args:
            spec: the run.
            restored: whether `restore` follows.
            acceleration: see `Model`.
        """
        self._spec = spec
        self.config = c = config_of(spec, Ga3cConfig)
        device = resolve_device(spec.device)
        self.device = describe(device)
        env = make_env(spec.environment, spec.environment_config)
        self.action_names = env.action_names
        torch.manual_seed(spec.seed)
        model = network(c, env)
        shape = ExperienceShape(
            MAX_AGENTS,
            c.t_max,
            len(env.action_names),
            env.observation_shape,
            env.observation_dtype.name,
        )
        env.close()
        self._experiences = Experiences(shape)
        self._experiences.live_agent[0] = NOT_WATCHED
        self.predictions, self.trainings = Queue(), Queue()
        self.stats = Stats()
        self.model = Model(model.to(device), device, c, acceleration)
        enter_phase(COMPILING)
        load_kernels(self.model.theta)
        enter_phase(f"starting {c.n_actors} agents")
        self.agents = AgentPool(spec, self._experiences, self.predictions, self.trainings)
        self.predictors: list[Predictor] = []
        self.trainers: list[Trainer] = []
        self._tuning: ThreadTuning | None = None
        self._count_AC = self._experiences.count_AC.copy()
        """The agents' counts as of the last `advance` or `settle`."""
        self._is_settled = False
        self._counted_before = self.counted()
        self.thread_counts = _configured(c)
        """Numbers of agents, predictors and trainers."""
        self._gate = MetricsGate()
        try:
            self.resize(self.thread_counts)
            self.random_play: RandomPlay = centre(self.network, spec, restored=restored)
        except BaseException:
            self.close()
            raise

    @property
    def network(self) -> ActorCritic:
        """The one model's network."""
        return self.model.network

    def advance(self, progress: float, *, watched: bool) -> StepResult:
        """Let agents, predictors and trainers work for `ADVANCE_S`, and return their results."""
        c = self.config
        self._is_settled = False
        self._experiences.live_agent[0] = RECORDED if watched else NOT_WATCHED
        self.model.learning_rate = learning_rate(c.learning_rate, c.learning_rate_schedule, progress)
        if not self.model.is_open:
            self._experiences.opened_at_s[0] = time.monotonic()
        self.model.go()
        self.stats.begin_sample()
        started = time.monotonic()
        result = StepResult(0, 0, 0)
        while (left := started + ADVANCE_S - time.monotonic()) > 0 and not self._done():
            self.agents.receive(min(left, _MAX_WAIT_S), result)
            self.stats.add_queue_lengths(len(self.predictions), len(self.trainings))
            for thread in self.threads():
                thread.raise_error()
        if self._done():
            self.model.pause()
        return self.take(result, time.monotonic() - started)

    def samples(self) -> Samples:
        """The actions that the latest update has learned from and, on a CPU, V of their states."""
        return self.model.samples

    def settle(self, progress: float) -> StepResult:
        """Pause predictors and trainers, and return what was done since the last `advance`.

        Each agent may still take the decision that was predicted last. It is not learned from before the next
        `advance`, which returns it; until then neither the state nor another call has it.
        """
        if self._is_settled:
            return StepResult(0, 0, 0)
        self._is_settled = True
        self.model.pause()
        result = StepResult(0, 0, 0)
        count_AC = np.full_like(self._experiences.count_AC, -1)
        while not np.array_equal(self._experiences.count_AC, count_AC):  # no message without its decision
            count_AC = self._experiences.count_AC.copy()
            while self.agents.receive(0.0, result):
                pass
        self._count(result, count_AC)
        result.updates = self.stats.take_updates()
        return self._gate.pass_on(result)

    def change(self, config: Ga3cConfig) -> None:
        """Continue with this config; agents and threads are started or stopped if their numbers change.

        When the adjustment is switched off, the numbers are the config's: memory is claimed for no more.
        """
        before, self.config = self.config, config
        self.model.config = config
        configured = _configured(config)._asdict()
        stopped = bool(before.adjustment_interval_s) and not config.adjustment_interval_s
        changed = {name: n for name, n in configured.items() if stopped or n != getattr(before, name)}
        if changed:
            self._tuning = None
            self.resize(self.thread_counts._replace(**changed))

    def policy(self, seed: int) -> SampledPolicy:
        """The current policy."""
        self.model.pause()
        check_finite(self.model.theta)
        return SampledPolicy(self.model.network, self.model.device, seed)

    def state(self) -> dict[str, Any]:
        """Parameters, accumulator, counts of each agent, and the numbers of agents and threads."""
        self.model.pause()
        check_finite(self.model.theta)
        return {
            "theta": self.model.theta.detach().cpu().clone(),
            "g": self.model.optimizer.g.cpu().clone(),
            "updates": self.model.updates,
            "counts": self._count_AC.tolist(),
            "taken": list(self._counted_before),
            "setting": list(self.thread_counts),
            "configured": list(_configured(self.config)),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`; every agent begins a new episode.

        Raises:
            ValueError: the state is of another network.
        """
        check_network(len(state["theta"]), len(self.model.theta))
        self.model.pause()
        self.agents.resize(0)
        for trainer in self.trainers:
            trainer.forget()
        with torch.no_grad():
            self.model.theta.copy_(state["theta"])
            self.model.optimizer.g.copy_(state["g"])
        self.model.updates = int(state["updates"])
        self._count_AC = np.asarray(state["counts"], np.int64)
        self._experiences.count_AC[:] = self._count_AC
        # Less than the counts in older checkpoints: the rest is reported after the resume.
        agent_steps, frames = state["taken"]
        self._counted_before = agent_steps, frames
        self._gate = MetricsGate()
        # What a fork has changed stands; the rest goes on as the adjustment has left it.
        adjusted = zip(state["setting"], state["configured"], _configured(self.config), strict=True)
        kept = ThreadCounts(*(now if now != before else setting for setting, before, now in adjusted))
        kept = kept._replace(n_actors=min(kept.n_actors, self.config.max_actors))
        self.resize(kept if self.config.adjustment_interval_s else self.thread_counts)

    def close(self) -> None:
        """Stop every agent and thread."""
        for thread in self.threads():
            thread.end()
        for thread in self.threads():
            thread.join()
        # An agent that waits because a queue is full ends when nobody reads it any more.
        self.predictions.close()
        self.trainings.close()
        self.agents.resize(0)
        self._experiences.close()

    def threads(self) -> list[ModelThread]:
        """Every predictor and trainer."""
        return [*self.predictors, *self.trainers]

    def resize(self, counts: ThreadCounts) -> None:
        """Start or end agents, predictors and trainers until their numbers are `counts`."""
        self.thread_counts = counts
        self.agents.resize(counts.n_actors)
        parts = (self.model, self._experiences, self.agents, self.stats)
        _resize(self.predictors, counts.n_predictors, lambda: Predictor(self.predictions, *parts))
        _resize(self.trainers, counts.n_trainers, lambda: Trainer(self.trainings, *parts))

    def _done(self) -> bool:
        bound = self._spec.stop.agent_steps
        return bound is not None and int(self._experiences.count_AC[:, STEPS].sum()) >= bound

    def counted(self) -> tuple[int, int]:
        """Agent steps and frames of all agents so far."""
        return _totals(self._experiences.count_AC)

    def take(self, result: StepResult, passed_s: float) -> StepResult:
        """Complete a result with what was counted and measured since the last one."""
        self._count(result, self._experiences.count_AC.copy())
        result.metrics, result.metrics_by_source, result.updates = self.stats.take(
            passed_s, self._experiences.waited_s_A, self.thread_counts
        )
        if result.updates:
            result.metrics["optim/learning_rate"] = self.model.learning_rate
        self._adjust()
        return self._gate.pass_on(result)

    def _count(self, result: StepResult, count_AC: NDArray[np.int64]) -> None:
        """Add the agent steps and frames of these counts since the last call."""
        self._count_AC = count_AC
        counted = _totals(count_AC)
        before, self._counted_before = self._counted_before, counted
        result.agent_steps, result.frames = (n - old for n, old in zip(counted, before, strict=True))

    def _adjust(self) -> None:
        interval_s = self.config.adjustment_interval_s
        if not interval_s:
            return
        if self._tuning is None:
            seed = np.random.SeedSequence((self._spec.seed, ADJUSTMENT_STREAM, self.model.updates))
            rng = np.random.default_rng(seed)
            self._tuning = ThreadTuning(self.thread_counts, rng, max_actors=self.config.max_actors)
            self.stats.begin_interval()
        if (tps := self.stats.finish_sample(interval_s)) is not None:
            self.resize(self._tuning.judge(tps))


def _totals(count_AC: NDArray[np.int64]) -> tuple[int, int]:
    """Agent steps and frames of all agents."""
    return int(count_AC[:, STEPS].sum()), int(count_AC[:, FRAMES].sum())


def _configured(config: Ga3cConfig) -> ThreadCounts:
    return ThreadCounts(config.n_actors, config.n_predictors, config.n_trainers)


def _resize(workers: list[Any], n: int, start: Any) -> None:
    """Start or stop threads until there are n."""
    while len(workers) < n:
        worker = start()
        worker.start()
        workers.append(worker)
    while len(workers) > n:
        worker = workers.pop()
        worker.end()
        worker.join()


METHOD = Method(Ga3cLearner, network, policy)
