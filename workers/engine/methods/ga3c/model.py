"""GA3C's one model, and its predictor and trainer threads."""

import math
import threading
import time
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.specs.algorithms.ga3c import Ga3cConfig
from workers.engine.methods.base import Samples, histogram
from workers.engine.methods.ga3c.adjustment import ThreadCounts
from workers.engine.methods.ga3c.gpu_batches import SIZES, GpuBatches, Losses
from workers.engine.methods.ga3c.memory import AgentRequest, Experiences, Queue, places
from workers.engine.nn.autograd import create_unroll
from workers.engine.nn.devices import Acceleration, acceleration_on, to_device
from workers.engine.nn.host_forward import HostForward
from workers.engine.nn.losses import ActorCriticLoss, ga3c_loss
from workers.engine.nn.networks import ActorCritic
from workers.engine.nn.optimizers import FlatParameters, RMSProp, clip_grad_norm_

MAX_PREDICTION_BATCH = SIZES[-1]
LAG_EDGES = (0, 1, 2, 4, 8, 16, 32, 64)
"""Lower edges of the bins of the policy lag's histogram."""
MIN_TPS_SAMPLES = 8
"""Minimum number of samples of trainings per second (TPS) in an interval between adjustments; each
`Learner.advance` makes one."""


class AgentNotifier(Protocol):
    """Notifies agents of results."""

    def is_current(self, request: AgentRequest) -> bool:
        """Whether the agent has not been started anew since this request, or stopped."""

    def answer_predictions(self, requests: Sequence[AgentRequest]) -> None:
        """Notify the agents that pi and V of their states are computed."""

    def answer_training(self, request: AgentRequest) -> None:
        """Notify the agent that its segment is free again."""


class Submission(NamedTuple):
    """Experiences an agent submitted together, L of them."""

    observation_L: NDArray[Any]
    action_L: NDArray[np.int32]
    return_L: NDArray[np.float32]
    version_L: NDArray[np.int64]


class Model:
    """theta, its optimizer, and a gate that pauses the threads."""

    def __init__(
        self,
        network: ActorCritic,
        device: torch.device,
        config: Ga3cConfig,
        acceleration: Acceleration | None = None,
    ) -> None:
        """Own the network's parameters.

        Args:
            network: on the device.
            device: where its threads compute.
            config: the run's config.
            acceleration: how a GPU is used; None for the defaults. It has no meaning on a CPU, where batches
                have no fixed sizes.
        """
        self.network = network
        self.device = device
        self.acceleration = acceleration_on(device, acceleration)
        self.config = config
        self.learning_rate = config.learning_rate
        self.samples: Samples = {}
        """Of the latest update, for histograms."""
        self.theta = FlatParameters(network).theta
        self.optimizer = RMSProp(
            self.theta,
            decay=config.rmsprop_decay,
            eps=config.rmsprop_eps,
            initial_g=config.rmsprop_initial_g,
        )
        self.updates = 0
        self.step_lock = threading.Lock()
        self._gate = threading.Condition()
        self._open = False
        self._busy = 0

    def update(self, dtheta: Tensor, max_norm: float, learning_rate: float | Tensor) -> Tensor:
        """Update theta by a gradient, clipped to this norm; returns its norm before.

        The caller holds `step_lock`.
        """
        norm = clip_grad_norm_(dtheta, max_norm)
        self.optimizer.step(dtheta, learning_rate)
        return norm

    @property
    def is_open(self) -> bool:
        """Whether the threads may work."""
        return self._open

    def go(self) -> None:
        """Let the threads work."""
        with self._gate:
            self._open = True
            self._gate.notify_all()

    def pause(self) -> None:
        """Pause every thread, and wait until none changes theta."""
        with self._gate:
            self._open = False
            self._gate.wait_for(lambda: self._busy == 0)

    def enter(self, ending: threading.Event) -> bool:
        """Start a piece of work; waits while the model is paused. False: the thread is to stop."""
        with self._gate:
            self._gate.wait_for(lambda: self._open or ending.is_set())
            if ending.is_set():
                return False
            self._busy += 1
            return True

    def leave(self) -> None:
        """Finish a piece of work."""
        with self._gate:
            self._busy -= 1
            self._gate.notify_all()

    def end(self, ending: threading.Event) -> None:
        """Stop the thread that enters with this event, also while the model is paused."""
        with self._gate:
            ending.set()
            self._gate.notify_all()


class Stats:
    """What the threads count, until the learner takes it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[str, list[float]] = {}
        self._lags: list[NDArray[np.int64]] = []
        self._predictions = self._updates = 0
        self._waited_s_A: NDArray[np.float64] | float = 0.0
        self._sample_updates = 0
        self._tps: list[float] = []
        self._sample_began = self._interval_began = time.monotonic()

    def predicted(self, n: int) -> None:
        """A predictor answered n requests in one pass."""
        with self._lock:
            self._predictions += n
            self._add("ga3c/prediction_batch", n)

    def trained(self, n: int, lag_N: NDArray[np.int64], losses: dict[str, float]) -> None:
        """A trainer made an update from n experiences."""
        with self._lock:
            self._updates += 1
            self._sample_updates += 1
            self._lags.append(lag_N)
            self._add("ga3c/training_batch", n)
            for metric, value in losses.items():
                self._add(metric, value)

    def add_queue_lengths(self, predictions: int, trainings: int) -> None:
        """Add a sample of the queues' lengths."""
        with self._lock:
            self._add("ga3c/prediction_queue", predictions)
            self._add("ga3c/training_queue", trainings)

    def take(
        self, passed_s: float, waited_s_A: NDArray[np.float64], counts: ThreadCounts
    ) -> tuple[dict[str, float], dict[str, dict[str, float]], int]:
        """Means since the last call, shares of the policy lag's ranges by source, and the number of updates.

        Args:
            passed_s: time since the last call.
            waited_s_A: time that each agent, running or not, has waited since the run began, without pauses.
            counts: the running agents, predictors and trainers.
        """
        with self._lock:
            metrics = {metric: total / n for metric, (total, n) in self._sums.items()}
            lags, updates, predictions = self._lags, self._updates, self._predictions
            self._sums, self._lags, self._updates, self._predictions = {}, [], 0, 0
            waited_s = float((waited_s_A - self._waited_s_A)[: counts.n_actors].sum())
            self._waited_s_A = waited_s_A.copy()
        metrics |= {
            "speed/updates_per_s": updates / passed_s,
            "speed/predictions_per_s": predictions / passed_s,
            "ga3c/n_actors": counts.n_actors,
            "ga3c/n_predictors": counts.n_predictors,
            "ga3c/n_trainers": counts.n_trainers,
            "ga3c/waiting_share": min(1.0, max(0.0, waited_s / passed_s / counts.n_actors)),
        }
        sources: dict[str, dict[str, float]] = {}
        if lags:
            lag_N = np.concatenate(lags)
            metrics |= {"ga3c/policy_lag": float(lag_N.mean()), "ga3c/policy_lag_max": float(lag_N.max())}
            sources = {
                f"lag {name}": {"ga3c/policy_lag_share": share} for name, share in histogram(lag_N, LAG_EDGES)
            }
        return metrics, sources, updates

    def take_updates(self) -> int:
        """The number of updates since the last call of this or `take`."""
        with self._lock:
            updates, self._updates = self._updates, 0
        return updates

    def begin_interval(self) -> None:
        """Start a new interval of TPS samples."""
        with self._lock:
            self._tps, self._sample_updates = [], 0
            self._sample_began = self._interval_began = time.monotonic()

    def begin_sample(self) -> None:
        """Start a sample of TPS; the time since the last one, such as an evaluation, does not count."""
        with self._lock:
            self._sample_updates, self._sample_began = 0, time.monotonic()

    def finish_sample(self, duration_s: float) -> list[float] | None:
        """Finish a sample; at the end of the interval return its samples and start the next, else None."""
        now = time.monotonic()
        with self._lock:
            self._tps.append(self._sample_updates / (now - self._sample_began))
            self._sample_updates, self._sample_began = 0, now
            if now - self._interval_began < duration_s or len(self._tps) < MIN_TPS_SAMPLES:
                return None
            samples, self._tps, self._interval_began = self._tps, [], now
        return samples

    def _add(self, metric: str, value: float) -> None:
        entry = self._sums.setdefault(metric, [0.0, 0])
        entry[0] += value
        entry[1] += 1


class ModelThread(threading.Thread):
    """A thread that takes requests from a queue until it is stopped."""

    def __init__(
        self, queue: Queue, model: Model, experiences: Experiences, agents: AgentNotifier, stats: Stats
    ):
        super().__init__(daemon=True)
        self._queue = queue
        self._model = model
        self._experiences = experiences
        self._agents = agents
        self._stats = stats
        self._ending = threading.Event()
        self._error: Exception | None = None

    def run(self) -> None:
        """Work; an error is stored for `raise_error`."""
        try:
            while self._model.enter(self._ending):
                try:
                    self.work()
                finally:
                    self._model.leave()
        except Exception as error:
            self._error = error

    def end(self) -> None:
        """Stop it after its current work; `join` waits."""
        self._model.end(self._ending)

    def raise_error(self) -> None:
        """Raise the error that stopped it, if one did."""
        if self._error is not None:
            raise self._error

    def work(self) -> None:
        """Take the waiting requests and handle them, or wait a moment for one."""
        raise NotImplementedError


class Predictor(ModelThread):
    """Answers every waiting request from one forward pass of the network."""

    def __init__(
        self, queue: Queue, model: Model, experiences: Experiences, agents: AgentNotifier, stats: Stats
    ):
        super().__init__(queue, model, experiences, agents, stats)
        self._unroll = create_unroll(model.network.body, None)
        self._forward: HostForward | None = None
        if model.acceleration is not None:
            observation = experiences.observation_ASL[0, 0, 0]
            self._forward = HostForward(
                self._evaluate,
                SIZES,
                observation.shape,
                observation.dtype,
                model.device,
                graphs=model.acceleration.graphs,
            )

    def work(self) -> None:
        """Answer every request that waits from one pass of the network."""
        requests = [r for r in self._queue.take(MAX_PREDICTION_BATCH) if self._agents.is_current(r)]
        if not requests:
            return
        shared, model = self._experiences, self._model
        at = places(requests)
        version = model.updates
        if self._forward is not None:
            for k, request in enumerate(requests):
                observation = shared.observation_ASL[request.agent, request.segment, request.place]
                self._forward.observation_B[k] = observation
            policy_BA, value_B = self._forward(len(requests))
        else:
            with torch.inference_mode():
                results = self._evaluate(to_device(shared.observation_ASL[at], model.device))
            policy_BA, value_B = (result.numpy() for result in results)
        shared.policy_AN[at[0]] = policy_BA  # [agents, actions] and [requests, actions]
        shared.value_A[at[0]] = value_B
        shared.version_ASL[at] = version
        self._agents.answer_predictions(requests)
        self._stats.predicted(len(requests))

    def _evaluate(self, observation_B: Tensor) -> tuple[Tensor, Tensor]:
        """The policy pi (B, A) and V (B,) of states (B, …)."""
        logits_BA, value_B = self._model.network.heads(self._unroll.peek(observation_B))
        return logits_BA.softmax(-1), value_B


class Trainer(ModelThread):
    """Updates theta from submissions with at least `min_training_batch` experiences together."""

    def __init__(
        self, queue: Queue, model: Model, experiences: Experiences, agents: AgentNotifier, stats: Stats
    ):
        super().__init__(queue, model, experiences, agents, stats)
        # Its own gradients of the one theta.
        self._network = deepcopy(model.network)
        self._flat = FlatParameters(self._network, theta=model.theta)
        self._gpu: GpuBatches | None = None
        if model.acceleration is not None:
            observation = experiences.observation_ASL[0, 0, 0]
            self._gpu = GpuBatches(
                self._network,
                self._flat.dtheta,
                model.update,
                observation.shape,
                observation.dtype,
                graphs=model.acceleration.graphs,
            )
        self._gathered: list[Submission] = []

    def work(self) -> None:
        """Take a batch of submissions and train on it."""
        while sum(len(s.return_L) for s in self._gathered) < self._model.config.min_training_batch:
            taken = self._queue.take(1)
            if not taken:
                return
            self._gather(taken[0])
        submissions, self._gathered = self._gathered, []
        self.train(submissions)

    def forget(self) -> None:
        """Drop the submissions gathered for the next batch; the model must be paused."""
        self._gathered.clear()

    def _gather(self, request: AgentRequest) -> None:
        """Copy a submission, so that the agent has its segment back before the batch is complete."""
        if not self._agents.is_current(request):
            return
        at = (request.agent, request.segment, slice(request.place))  # here its number of experiences
        shared = self._experiences
        self._gathered.append(
            Submission(
                shared.observation_ASL[at].copy(),
                shared.action_ASL[at].copy(),
                shared.return_ASL[at].copy(),
                shared.version_ASL[at].copy(),
            )
        )
        self._agents.answer_training(request)

    def train(self, submissions: Sequence[Submission]) -> None:
        """Update theta once, from all experiences of these submissions."""
        model, c = self._model, self._model.config
        observation_N, action_N, R_N, version_N = (
            np.concatenate(column) for column in zip(*submissions, strict=True)
        )
        n = len(R_N)
        gpu = self._gpu if n <= SIZES[-1] else None  # a larger batch than its fixed sizes, as on a CPU
        samples: Samples = {"policy/actions": action_N}
        loss: ActorCriticLoss | None = None
        if gpu is not None:  # its graphs keep the values on the GPU
            gpu.compute_gradient(observation_N, action_N, R_N, c)
        else:
            loss, samples["policy/values"] = self._compute_gradient(observation_N, action_N, R_N, c)
        with model.step_lock:
            lag_N = model.updates - version_N
            if gpu is not None:
                losses = gpu.update(c, model.learning_rate)
            else:
                assert loss is not None
                norm = model.update(self._flat.dtheta, c.max_grad_norm or math.inf, model.learning_rate)
                losses = Losses(loss.policy.item(), loss.value.item(), loss.entropy.item(), norm.item())
            model.updates += 1
            model.samples = samples
        metrics = {
            "loss/policy": losses.policy / n,
            "loss/value": losses.value / n,
            "loss/entropy": losses.entropy / n,
            "optim/grad_norm": losses.grad_norm,
        }
        self._stats.trained(n, lag_N, metrics)

    def _compute_gradient(
        self,
        observation_N: NDArray[Any],
        action_N: NDArray[np.int32],
        R_N: NDArray[np.float32],
        config: Ga3cConfig,
    ) -> tuple[ActorCriticLoss, NDArray[np.float32]]:
        """Write the gradient on N experiences to the trainer's dtheta; returns the losses and V_N."""
        device = self._model.device
        logits_NA, value_N = self._network(to_device(observation_N, device))
        loss = ga3c_loss(
            logits_NA,
            value_N,
            to_device(action_N, device).long(),
            to_device(R_N, device),
            beta=config.beta,
            value_coefficient=config.value_coefficient,
            log_eps=config.log_eps,
        )
        self._flat.dtheta.zero_()
        loss.total.backward()  # type: ignore[no-untyped-call]
        return loss, value_N.detach().cpu().numpy()
