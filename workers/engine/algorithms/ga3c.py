"""GA3C: one model, predictors and trainers round it, agents without one (Babaeizadeh et al. 2017).

N_A agents, each a process with one environment, put their states into a prediction queue. N_P predictors take
all requests that wait and answer them from one pass of the network. Agents submit their experiences, t_max or
fewer at an episode's end, to a training queue; N_T trainers take submissions until they have
`min_training_batch` experiences, and update the one theta by equation 5,

    d theta = sum grad [ log(pi(a|s; theta) + eps) (R - V(s; theta)) + beta H(pi(s; theta) + eps) ]

and the gradient of (R - V(s; theta))^2, with RMSProp, eps inside the root (equation 3). What is trained on
was played some updates ago: the policy lag, which is measured. Every `adjustment_interval_s` one of N_A, N_P
and N_T changes by one (section 4.3; see `workers.engine.ga3c.adjustment`); N_A never beyond the agents that
the run has claimed memory for.

Differences from the paper:
- Agents do not send states: these lie in shared memory as the bytes the world gives, and the queues carry
  6 bytes a request. pi and V come back the same way.
- Predictors read theta while trainers write it, as TensorFlow's do; the step itself is taken by one trainer
  at a time, so that no update of g is lost.
- An agent has at most four submissions under way and then waits, which bounds the policy lag. (The paper's
  queues are bounded by a size that it does not print.)
- Rewards are clipped to ±`reward_clip`, as in Mnih et al. 2016.
- An episode that is cut off is not taken as terminal: the value of its last state is added.
- Between evaluations and checkpoints, while theta must stand still, predictors and trainers pause and agents
  wait for them.
"""

import time
from typing import Any

import numpy as np
import torch
from torch import nn

from backend.specs.algorithms import AlgorithmConfig
from backend.specs.algorithms.ga3c import MAX_AGENTS, Ga3cConfig
from backend.specs.run import RunSpec
from workers.engine.algorithms.ga3c_model import Model, Predictor, Stats, Trainer, Worker
from workers.engine.algorithms.ga3c_troupe import Troupe
from workers.engine.devices import describe, resolve_device
from workers.engine.envs import make_world
from workers.engine.envs.base import World
from workers.engine.ga3c.adjustment import Adjustment, Setting
from workers.engine.ga3c.agent import RECORDED
from workers.engine.ga3c.memory import FRAMES, NOBODY, STEPS, Experiences, Queue, Shape
from workers.engine.learner import Advance, Policy
from workers.engine.networks import ActorCritic, actor_critic, large_actor_critic
from workers.engine.policies import SampledPolicy
from workers.engine.schedules import linear

ADVANCE_S = 0.25
"""How long the training loop leaves the parts to themselves before it looks for stops and changes."""


def network(spec: RunSpec, world: World) -> ActorCritic:
    """The network of a run."""
    assert isinstance(spec.config, Ga3cConfig)
    c, shape, n_actions = spec.config, world.observation_shape, len(world.action_names)
    if c.network == "large":
        return large_actor_critic(shape, n_actions, stride=c.first_layer_stride)
    return actor_critic(c.network, shape, n_actions)


def policy(spec: RunSpec, network: nn.Module, device: torch.device, seed: int) -> Policy:
    """Samples from pi, with randomness of its own."""
    assert isinstance(network, ActorCritic)
    return SampledPolicy(network, device, seed)


class Ga3c:
    """The algorithm at work; see `workers.engine.learner.Learner`."""

    def __init__(self, spec: RunSpec) -> None:
        assert isinstance(spec.config, Ga3cConfig)
        self._spec = spec
        self.config = c = spec.config
        device = resolve_device(spec.device)
        self.device = describe(device)
        world = make_world(spec.environment, spec.environment_config)
        self.action_names = world.action_names
        torch.manual_seed(spec.seed)
        model = network(spec, world)
        shape = Shape(
            MAX_AGENTS,
            c.t_max,
            len(world.action_names),
            world.observation_shape,
            world.observation_dtype.name,
        )
        world.close()
        self._experiences = Experiences(shape)
        self._experiences.watched[0] = NOBODY
        self._predictions, self._trainings = Queue(), Queue()
        self._stats = Stats()
        self._model = Model(model.to(device), device, c)
        self._troupe = Troupe(spec, self._experiences, self._predictions, self._trainings)
        self._predictors: list[Predictor] = []
        self._trainers: list[Trainer] = []
        self._adjustment: Adjustment | None = None
        self._told = self._counted()
        self._setting = Setting(c.n_actors, c.n_predictors, c.n_trainers)
        try:
            self._set(self._setting)
        except BaseException:
            self.close()
            raise

    @property
    def setting(self) -> Setting:
        """How many agents, predictors and trainers there are."""
        return self._setting

    def advance(self, progress: float, *, watched: bool) -> Advance:
        """Let the parts work for a moment; tell what they did."""
        c = self.config
        self._experiences.watched[0] = RECORDED if watched else NOBODY
        self._model.learning_rate = c.learning_rate
        if c.learning_rate_schedule == "linear":
            self._model.learning_rate = linear(c.learning_rate, progress)
        self._model.go()
        self._stats.begin_sample()
        began = time.monotonic()
        heard = Advance(0, 0, 0)
        while (left := began + ADVANCE_S - time.monotonic()) > 0 and not self._done():
            self._troupe.listen(left, heard)
            self._stats.see_queues(len(self._predictions), len(self._trainings))
            for worker in self._workers():
                worker.raise_error()
        if self._done():
            self._model.pause()
        return self._take(heard, time.monotonic() - began)

    def change(self, config: AlgorithmConfig) -> None:
        """Go on with other settings; agents and threads are started or ended where their numbers change.

        Where the adjustment ends, there are as many of each as were asked for: memory is claimed for no more.
        """
        assert isinstance(config, Ga3cConfig)
        before, self.config = self.config, config
        self._model.config = config
        asked = Setting(config.n_actors, config.n_predictors, config.n_trainers)._asdict()
        stopped = bool(before.adjustment_interval_s) and not config.adjustment_interval_s
        changed = {name: n for name, n in asked.items() if stopped or n != getattr(before, name)}
        if changed:
            self._adjustment = None
            self._set(self._setting._replace(**changed))

    def policy(self, seed: int) -> SampledPolicy:
        """Samples from pi with randomness of its own."""
        self._model.pause()
        return SampledPolicy(self._model.network, self._model.device, seed)

    def state(self) -> dict[str, Any]:
        """Parameters, accumulator, counts of each agent, and how many there are of each part."""
        self._model.pause()
        return {
            "theta": self._model.theta.detach().cpu().clone(),
            "g": self._model.optimizer.g.cpu().clone(),
            "updates": self._model.updates,
            "counts": self._experiences.count_AC.tolist(),
            "setting": list(self._setting),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`; every agent begins a new episode.

        Raises:
            ValueError: the state is of another network.
        """
        if state["theta"].shape != self._model.theta.shape:
            raise ValueError("the checkpoint is of another network")
        self._model.pause()
        self._troupe.set(0)
        for trainer in self._trainers:
            trainer.forget()
        with torch.no_grad():
            self._model.theta.copy_(state["theta"])
            self._model.optimizer.g.copy_(state["g"])
        self._model.updates = int(state["updates"])
        self._experiences.count_AC[:] = np.asarray(state["counts"], np.int64)
        self._told = self._counted()
        kept = Setting(*state["setting"])
        kept = kept._replace(n_actors=min(kept.n_actors, self.config.most_actors))
        self._set(kept if self.config.adjustment_interval_s else self._setting)

    def close(self) -> None:
        """End every agent and thread."""
        for worker in self._workers():
            worker.end()
        self._troupe.set(0)
        for worker in self._workers():
            worker.join()
        self._predictions.close()
        self._trainings.close()
        self._experiences.close()

    def _workers(self) -> list[Worker]:
        return [*self._predictors, *self._trainers]

    def _set(self, setting: Setting) -> None:
        self._setting = setting
        self._troupe.set(setting.n_actors)
        parts = (self._model, self._experiences, self._troupe, self._stats)
        _resize(self._predictors, setting.n_predictors, lambda: Predictor(self._predictions, *parts))
        _resize(self._trainers, setting.n_trainers, lambda: Trainer(self._trainings, *parts))

    def _done(self) -> bool:
        bound = self._spec.stop.agent_steps
        return bound is not None and int(self._experiences.count_AC[:, STEPS].sum()) >= bound

    def _counted(self) -> tuple[int, int]:
        count_AC = self._experiences.count_AC
        return int(count_AC[:, STEPS].sum()), int(count_AC[:, FRAMES].sum())

    def _take(self, advance: Advance, passed_s: float) -> Advance:
        counted = self._counted()
        advance.agent_steps, advance.frames = (n - told for n, told in zip(counted, self._told, strict=True))
        self._told = counted
        waited_s = float(self._experiences.waited_s_A[: self._setting.n_actors].sum())
        advance.internals, advance.of_sources, advance.updates = self._stats.take(
            passed_s, waited_s, self._setting
        )
        if advance.updates:
            advance.internals["optim/learning_rate"] = self._model.learning_rate
        self._adjust()
        return advance

    def _adjust(self) -> None:
        every = self.config.adjustment_interval_s
        if not every:
            return
        if self._adjustment is None:
            rng = np.random.default_rng(self._model.updates)
            self._adjustment = Adjustment(self._setting, rng, most_actors=self.config.most_actors)
            self._stats.begin_interval()
        if (tps := self._stats.interval(every)) is not None:
            self._set(self._adjustment.judge(tps))


def _resize(workers: list[Any], n: int, start: Any) -> None:
    """Start or end threads until there are n."""
    while len(workers) < n:
        worker = start()
        worker.start()
        workers.append(worker)
    while len(workers) > n:
        worker = workers.pop()
        worker.end()
        worker.join()
