"""Checks that a method computes the same on the GPU as on the CPU.

Both devices start from the same theta and get the same observations, actions and returns. Their random
generators differ, so whole runs would diverge at the first action.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.specs.algorithms.ga3c import Ga3cConfig
from backend.specs.algorithms.replayed import ReplayedQConfig
from backend.specs.run import RunSpec
from benchmarks.gpu.rows.learners import create_learner, spec_of, update
from workers.engine.envs import make_env
from workers.engine.methods.base import Learner
from workers.engine.methods.dqn.learner import DqnNetworks, create_optimizer
from workers.engine.methods.ga3c import ga3c
from workers.engine.methods.ga3c.memory import AgentRequest, Experiences, ExperienceShape, Queue, put
from workers.engine.methods.ga3c.model import Model, Predictor, Stats, Submission, Trainer
from workers.engine.methods.paac.method import RolloutContext, RolloutFactories, SinglePass, Slice
from workers.engine.methods.registry import METHODS
from workers.engine.nn.autograd import create_unroll
from workers.engine.nn.devices import Acceleration, prepare_torch, resolve_device, to_device
from workers.engine.nn.optimizers import FlatParameters, RMSProp, clip_grad_norm_
from workers.engine.nn.replay import Batch
from workers.engine.training.checkpoint import check_state, load, save

GAME = "ALE/Pong-v5"
T = 5
PASSES = 3
"""Gradients from one theta, of which the last is compared: CUDA graphs are recorded in the second."""
BOUNDS = {"fp32": 1e-4, "bf16": 4e-2}
"""Largest relative error against the CPU in fp32. bf16 has 8 bits of mantissa: one product is within 4e-3."""
TURNS_N = (5, 20)
"""Predictions and experiences of GA3C in each turn, in rotation; both are filled up to the next size."""
LEARNING_RATE = 1.0
"""Of the compared update: the step is not lost in the rounding of theta."""


class UpdateVectors(NamedTuple):
    """One update: the gradient and the change of theta, each (P,) float32 on the CPU."""

    dtheta: Tensor
    step: Tensor


class Decisions(NamedTuple):
    """N = T B decisions, those of one time together."""

    observation_N: NDArray[np.uint8]
    action_N: NDArray[np.int64]
    return_N: NDArray[np.float32]


def compare_gradients(
    *, algorithm: str, network: str, precision: str, device: str, B: int
) -> Iterator[dict[str, Any]]:
    """Relative errors of the gradient and of one update on a device, against the CPU in fp32."""
    prepare_torch()
    compute = {"ga3c": _ga3c_update, "dqn": _dqn_update}.get(algorithm, _rollout_update)
    decisions = _decisions(T * B)

    def compute_on(device_name: str, precision_name: str) -> UpdateVectors:
        config: dict[str, Any] = {"network": network}
        if algorithm != "ga3c":
            config["precision"] = precision_name
        spec = spec_of(algorithm, GAME, device_name, config)
        torch.manual_seed(0)
        return compute(spec, torch.device(device_name), decisions)

    expected, actual = compute_on("cpu", "fp32"), compute_on(device, precision)
    errors = _errors(actual, expected)
    record: dict[str, Any] = {
        "errors": errors,
        "bound": BOUNDS[precision],
        "passed": max(errors.values()) <= BOUNDS[precision],
    }
    if precision != "fp32":
        record["errors_on_cpu"] = _errors(compute_on("cpu", precision), expected)
    yield record


def compare_graphs(
    *, algorithm: str, device: str, config: dict[str, Any], updates: int
) -> Iterator[dict[str, Any]]:
    """Whether training with CUDA graphs results in the same theta, bit for bit, as without.

    PAAC and DQN train as runs do. GA3C's processes and threads take turns in no fixed order, so that its
    predictor and its trainer get the same states and experiences one after the other; its predictions are
    compared too. `repeatable`: whether the same follows twice without graphs. `graph_launches`: how many
    graphs were launched with the switch on and, where that must be none, off.
    """
    prepare_torch()
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    spec = spec_of(algorithm, GAME, device, config)
    compute = _compute_in_turns if algorithm == "ga3c" else _train_theta
    with _count_launches() as launches:
        plain, again = (compute(spec, Acceleration(graphs=False), updates) for _ in range(2))
        without = len(launches)
        by_graphs = compute(spec, Acceleration(), updates)
    switched = without == 0 and (device == "cpu" or len(launches) > 0)
    yield {
        "updates": updates,
        "graph_launches": {"on": len(launches) - without, "off": without},
        "repeatable": torch.equal(plain, again),
        "max_difference": float((by_graphs - plain).abs().max()),
        "passed": switched and torch.equal(by_graphs, plain),
    }


@contextmanager
def _count_launches() -> Iterator[list[None]]:
    """Yield a list that gets an element at each launch of a CUDA graph, by any thread of this process."""
    launches = list[None]()
    replay = torch.cuda.CUDAGraph.replay

    def counted(self: torch.cuda.CUDAGraph) -> None:
        launches.append(None)
        replay(self)

    torch.cuda.CUDAGraph.replay = counted  # type: ignore[method-assign]
    try:
        yield launches
    finally:
        torch.cuda.CUDAGraph.replay = replay  # type: ignore[method-assign]


def compare_checkpoints(*, algorithm: str, device: str, folder: str) -> Iterator[dict[str, Any]]:
    """Train on the CPU, resume that run on a device, and that one on the CPU again.

    Raises:
        ValueError: the restored theta is not that of the checkpoint.
        DivergedError: the state of a learner holds NaN or Inf.
    """
    prepare_torch()
    path = Path(folder) / f"{algorithm}.pt"
    path.parent.mkdir(parents=True, exist_ok=True)
    specs = {where: spec_of(algorithm, GAME, where, _SMALL[algorithm]) for where in ("cpu", device)}
    state = None
    for where in ("cpu", device, "cpu"):
        with closing(create_learner(specs[where])) as learner:
            if state is not None:
                learner.restore(state["learner"])
                restored = _theta(learner)
                if not torch.equal(restored, state["learner"]["theta"]):
                    raise ValueError(f"theta restored on {where} is not that of the checkpoint")
            update(learner, 3)
            trained = {"learner": learner.state()}
            check_state(trained)  # as the training loop does before it saves
            save(path, trained, learner.network)
            state = load(path)
    yield {"passed": True}


_SMALL: dict[str, dict[str, Any]] = {
    "paac": {"network": "nips", "n_e": 8, "n_w": 2},
    "paac_q": {"network": "nips", "n_e": 8, "n_w": 2},
    "ga3c": {"network": "nips", "n_actors": 4, "adjustment_interval_s": 0.0},
    "dqn": {"network": "nips", "replay_capacity": 2_000, "learning_starts_agent_steps": 100},
}
"""Small runs of every method that trains on a GPU."""


def _errors(actual: UpdateVectors, expected: UpdateVectors) -> dict[str, float]:
    return {
        name: float(torch.linalg.vector_norm(a - e) / torch.linalg.vector_norm(e))
        for name, a, e in zip(UpdateVectors._fields, actual, expected, strict=True)
    }


def _decisions(n: int) -> Decisions:
    """Consecutive states of random play, with random actions and returns.

    The returns are positive: where the decisions' gradients cancel, their sum is mostly rounding.
    """
    rng = np.random.default_rng(0)
    env = make_env(GAME, spec_of("paac", GAME, "cpu", {}).environment_config)
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(0, observation)
    n_actions = len(env.action_names)
    states = []
    for action in rng.integers(n_actions, size=n).tolist():
        if env.step(action, observation).episode_over:
            env.reset(1, observation)
        states.append(observation.copy())
    env.close()
    return Decisions(
        np.stack(states),
        rng.integers(n_actions, size=n),
        rng.uniform(0.5, 1.5, size=n).astype(np.float32),
    )


def _rollout_update(spec: RunSpec, device: torch.device, decisions: Decisions) -> UpdateVectors:
    """PAAC's framework: the activations of acting, the method's loss, and RMSProp."""
    factories: RolloutFactories = METHODS[spec.algorithm].factories
    c = factories.config_of(spec)
    env = make_env(spec.environment, spec.environment_config)
    network = factories.network(c, env).to(device)
    env.close()
    flat = FlatParameters(network)
    dtype = torch.bfloat16 if c.precision == "bf16" else None
    unroll = create_unroll(network.body, None, dtype=dtype)
    N = len(decisions.action_N)
    rollout = factories.algorithm(
        RolloutContext(c, network, flat.theta.clone(), unroll, Slice(0, N // T), torch.Generator(device))
    )
    assert isinstance(rollout, SinglePass)
    action_N, R_N = (torch.from_numpy(array).to(device) for array in decisions[1:])
    for _ in range(PASSES):
        unroll.begin()
        for observation_B in np.split(decisions.observation_N, T):
            unroll.step(to_device(observation_B, device))
        features_NF = unroll.features()
        loss, _ = rollout.loss(features_NF, action_N, R_N)
        flat.dtheta.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        assert features_NF.grad is not None
        unroll.backward(features_NF.grad)
    dtheta, theta = flat.dtheta.cpu().clone(), flat.theta.cpu().clone()
    clip_grad_norm_(flat.dtheta, c.max_grad_norm)
    optimizer = RMSProp(flat.theta, decay=c.rmsprop_decay, eps=c.rmsprop_eps, initial_g=c.rmsprop_initial_g)
    optimizer.step(flat.dtheta, LEARNING_RATE)
    return UpdateVectors(dtheta, flat.theta.cpu() - theta)


def _dqn_update(spec: RunSpec, device: torch.device, decisions: Decisions) -> UpdateVectors:
    """DQN's gradient on a minibatch, and centred RMSProp. Gorila's learners compute the same gradient."""
    c = spec.config
    assert isinstance(c, ReplayedQConfig)
    env = make_env(spec.environment, spec.environment_config)
    shape, n_actions = env.observation_shape, len(env.action_names)
    env.close()
    networks = DqnNetworks(c, shape, n_actions, device)
    states = decisions.observation_N
    is_terminal = np.arange(len(states)) % 8 == 0
    batch = Batch(states, decisions.action_N, decisions.return_N, is_terminal, np.roll(states, -1, 0))
    for _ in range(PASSES):
        networks.compute_gradient(batch)
    dtheta, theta = networks.dtheta.cpu().clone(), networks.theta.cpu().clone()
    create_optimizer(networks.theta, c).step(networks.dtheta, LEARNING_RATE)
    return UpdateVectors(dtheta, networks.theta.cpu() - theta)


class _NoAgents:
    """Agents that wait for nothing; see `workers.engine.methods.ga3c.model.AgentNotifier`."""

    def is_current(self, request: AgentRequest) -> bool:
        return True

    def answer_predictions(self, requests: Sequence[AgentRequest]) -> None:
        pass

    def answer_training(self, request: AgentRequest) -> None:
        pass


class _Ga3cParts(NamedTuple):
    """A predictor and a trainer, which are no threads of their own, and what they share."""

    model: Model
    experiences: Experiences
    predictions: Queue
    predictor: Predictor
    trainer: Trainer


@contextmanager
def _ga3c_parts(
    spec: RunSpec, device: torch.device, agents: int, acceleration: Acceleration | None = None
) -> Iterator[_Ga3cParts]:
    """The parts of GA3C's learner, with memory for so many agents and without agents."""
    c = spec.config
    assert isinstance(c, Ga3cConfig)
    env = make_env(spec.environment, spec.environment_config)
    model = Model(ga3c.network(c, env).to(device), device, c, acceleration)
    shape = ExperienceShape(
        agents, c.t_max, len(env.action_names), env.observation_shape, env.observation_dtype.name
    )
    env.close()
    predictions, trainings = Queue(), Queue()
    with closing(predictions), closing(trainings), closing(Experiences(shape)) as experiences:
        shared = (model, experiences, _NoAgents(), Stats())
        predictor, trainer = Predictor(predictions, *shared), Trainer(trainings, *shared)
        yield _Ga3cParts(model, experiences, predictions, predictor, trainer)


def _submission(decisions: Decisions) -> Submission:
    """Decisions as an agent submits them, by the first version of theta."""
    observation_N, action_N, R_N = decisions
    return Submission(observation_N, action_N.astype(np.int32), R_N, np.zeros(len(R_N), np.int64))


def _ga3c_update(spec: RunSpec, device: torch.device, decisions: Decisions) -> UpdateVectors:
    """One training batch of GA3C. g starts at 0, so the squared gradient can be read from it."""
    with _ga3c_parts(spec, device, 1) as (model, _, _, _, trainer):
        theta = model.theta.cpu().clone()
        model.learning_rate = LEARNING_RATE
        submission = _submission(decisions)
        for _ in range(PASSES):
            model.theta.detach().copy_(theta)
            model.optimizer.g.zero_()
            trainer.train([submission])
        step, g = model.theta.cpu() - theta, model.optimizer.g.cpu()
        decay = model.config.rmsprop_decay
    return UpdateVectors((g / (1 - decay)).sqrt() * -step.sign(), step)


def _compute_in_turns(spec: RunSpec, acceleration: Acceleration, updates: int) -> Tensor:
    """Everything that GA3C's predictor and trainer compute, in turns: pi and V of each turn, and theta."""
    torch.manual_seed(spec.seed)
    decisions = _decisions(max(TURNS_N))
    computed = []
    with _ga3c_parts(spec, resolve_device(spec.device), max(TURNS_N), acceleration) as parts:
        model, experiences, predictions, predictor, trainer = parts
        for k in range(updates):
            n = TURNS_N[k % len(TURNS_N)]
            part = Decisions._make(array[:n] for array in decisions)
            experiences.observation_ASL[:n, 0, 0] = part.observation_N
            for agent in range(n):
                put(predictions.entrance, AgentRequest(agent, generation=0, segment=0, place=0))
            predictor.work()
            computed += [experiences.policy_AN[:n].copy().ravel(), experiences.value_A[:n].copy()]
            trainer.train([_submission(part)])
        theta = model.theta.detach().cpu().clone()
    return torch.cat([theta, *map(torch.from_numpy, computed)])


def _train_theta(spec: RunSpec, acceleration: Acceleration, updates: int) -> Tensor:
    with closing(create_learner(spec, acceleration)) as learner:
        update(learner, updates)
        return _theta(learner)


def _theta(learner: Learner) -> Tensor:
    theta: Tensor = learner.state()["theta"]
    return theta.cpu().clone()
