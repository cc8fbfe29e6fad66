"""What methods offer the training loop; what the frameworks `asynchronous` and `paac` build algorithms from.

Needs no torch at run time: GA3C's agents import this module.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from backend.specs.algorithms import AlgorithmConfig
from backend.specs.run import RunSpec
from workers.engine.envs.base import Env
from workers.engine.envs.info import Totals
from workers.engine.methods.recording import EpisodeRecorder

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from workers.engine.methods.random_play import RandomPlay

ConfigT = TypeVar("ConfigT", bound=AlgorithmConfig)
ConfigT_contra = TypeVar("ConfigT_contra", contravariant=True)
NetworkT = TypeVar("NetworkT")
ContextT = TypeVar("ContextT")
AlgorithmT_co = TypeVar("AlgorithmT_co", covariant=True)

ADVANCE_S = 0.25
"""How long `Learner.advance` lets processes and threads work before it returns."""
RECORDED = 0
"""Number of the actor, agent or environment whose episodes are recorded and shown live."""


Samples = dict[str, NDArray[Any]]
"""Metric -> values, of whatever shape: whole numbers, such as actions, or others."""


@dataclass(slots=True)
class EpisodeEnd:
    """A finished training episode."""

    source: str
    """The actor whose episode it is; empty in PAAC's framework."""
    seed: int
    episode_return: float
    length_steps: int
    length_frames: int
    crashed: bool = False
    """Whether the environment crashed: the episode then only causes a warning."""
    crash: str = ""
    """How it crashed."""
    recording: EpisodeRecorder | None = None
    """The whole episode, if it was recorded."""


@dataclass(slots=True)
class StepResult:
    """What was done in one call of `Learner.advance`, or up to one of `Learner.settle`."""

    agent_steps: int
    frames: int
    updates: int
    episodes: list[EpisodeEnd] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    """Metric name -> value, such as `loss/policy`."""
    metrics_by_source: dict[str, dict[str, float]] = field(default_factory=dict)
    """Source, such as an actor -> metric name -> value."""
    info: Totals = field(default_factory=dict)
    """Scalars of a custom environment's `info`."""
    live_frames: list[bytes] = field(default_factory=list)
    """JPEGs of the recorded episode, while a viewer watches."""
    warnings: list[str] = field(default_factory=list)
    """Errors that were recovered from, for the run's log."""


class MetricsGate:
    """Withholds metrics until a decision was taken since a learner was created or restored.

    A resume deletes only later points: a second one from the same checkpoint would keep those of the first.
    """

    def __init__(self) -> None:
        self._has_acted = False

    def pass_on(self, result: StepResult) -> StepResult:
        """The same result, without its metrics if no decision was taken so far."""
        self._has_acted |= result.agent_steps > 0
        if not self._has_acted:
            result.metrics, result.metrics_by_source = {}, {}
        return result


def clipped(reward: float, bound: float) -> float:
    """The reward clipped to ±`bound`; 0 clips nothing."""
    return min(max(reward, -bound), bound) if bound else reward


def histogram(value_N: NDArray[np.integer[Any]], edges: Sequence[int]) -> list[tuple[str, float]]:
    """Name and fraction of each bin: those from one edge to the next, and of the last edge and more.

    Args:
        value_N: (N,), none below the first edge.
        edges: lower edges of the bins, ascending.
    """
    counts = np.bincount(np.searchsorted(edges, value_N, "right") - 1, minlength=len(edges))
    names = [str(low) if high == low + 1 else f"{low}-{high - 1}" for low, high in pairwise(edges)]
    return list(zip([*names, f"{edges[-1]}+"], (counts / len(value_N)).tolist(), strict=True))


class Policy(Protocol):
    """How an agent acts in evaluation."""

    def act(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Actions (N,), values V or max Q (N,), and pi or Q (N, A) for the states of N environments;
        if actions are continuous, (N, D), mu (N, D).

        Args:
            observation_N: (N, …).
            environment_N: (N,) indices of the environments, for recurrent policies.
        """

    def forget(self, environment: int) -> None:
        """Reset the memory of this environment, whose episode is over."""


class DivergedError(RuntimeError):
    """Training diverged (NaN or Inf); checkpoints saved before are intact."""

    def __init__(self, name: str, value: float) -> None:
        advice = "try a smaller learning rate"
        if name.startswith("rollout/"):  # of the environment, not of the optimiser
            advice = "the environment's rewards are not finite, or too large"
        super().__init__(f"training diverged: {name} became {value} (NaN or Inf); {advice}")


def check_finite(theta: "Tensor") -> None:
    """Check parameters that processes or threads may have changed since their last metrics were reported.

    Raises:
        DivergedError: a parameter is not finite.
    """
    finite = theta.isfinite()
    if not finite.all():
        raise DivergedError("theta", float(theta[~finite][0]))


def gradient_norms(network: "nn.Module") -> Samples:
    """The norm of each layer's gradient, as it was applied: scaled and clipped."""
    import torch

    layers: dict[str, list[Tensor]] = {}
    for name, parameter in network.named_parameters():
        if parameter.grad is not None:
            layers.setdefault(name.rpartition(".")[0] or name, []).append(parameter.grad)
    if not layers:
        return {}
    norms = [torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads))) for grads in layers.values()]
    values = torch.stack(norms).cpu().numpy()
    return {f"gradients/{name}": value for name, value in zip(layers, values, strict=True)}


def check_network(stored: int, own: int) -> None:
    """Check that a state has as many parameters as the network that continues from it.

    Raises:
        ValueError: it is of another network.
    """
    if stored != own:
        raise ValueError("the checkpoint is of another network")


class Learner(Protocol):
    """Trains one run by one algorithm.

    The engine has called `workers.engine.nn.devices.prepare_torch` before it creates one. Processes that a
    learner starts call it themselves, first of all: each computes on one thread, with subnormal numbers
    flushed to 0.
    """

    device: str
    action_names: tuple[str, ...]
    n_rollout_workers: int | None
    """PAAC's rollout workers in use, which the host's cores limit; None for other methods."""
    random_play: "RandomPlay"
    """What the random play before training took, if there was one."""

    @property
    def network(self) -> "nn.Module":
        """The network with parameters theta; checkpoints store theta by their names and shapes."""

    def advance(self, progress: float, *, watched: bool) -> StepResult:
        """Train for one update, or for `ADVANCE_S`.

        Args:
            progress: completed fraction of the agent steps over which rates are annealed; may exceed 1.
            watched: whether live frames are wanted.
        """

    def samples(self) -> Samples:
        """Values of the latest update, for histograms: no more than is at hand. Called once a second."""

    def settle(self, progress: float) -> StepResult:
        """Pause until the next `advance`, and return what was done since the last one.

        `policy` and `state` come next: a checkpoint then counts all that it contains. Metrics that this call
        does not return are returned by the next `advance`.

        Args:
            progress: as of `advance`.
        """

    def change(self, config: Any) -> None:
        """Continue with this config of the run's algorithm; only live fields differ."""

    def policy(self, seed: int) -> Policy:
        """The current policy for evaluation, with its own random numbers; `settle` comes before.

        Raises:
            DivergedError: theta is not finite.
        """

    def state(self) -> dict[str, Any]:
        """Tensors and plain values from which `restore` continues; `settle` comes before.

        Raises:
            DivergedError: theta is not finite.
        """

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""

    def close(self) -> None:
        """Stop every process and thread it started."""


@dataclass(frozen=True)
class MethodContext(Generic[ConfigT, NetworkT]):
    """What a framework's algorithm is created from, in the process where it acts and learns; each framework
    adds to it."""

    config: ConfigT
    network: NetworkT
    """With the parameters it acts by: theta, or an actor-learner's copy theta'."""
    theta_minus: "Tensor"
    """Parameters of the target network, (P,)."""


def no_target_network(config: Any) -> int:
    """`AlgorithmFactories.target_frames` of an algorithm without a target network."""
    return 0


@dataclass(frozen=True)
class AlgorithmFactories(Generic[ConfigT, NetworkT, ContextT, AlgorithmT_co]):
    """What a framework creates one of its algorithms from, in the processes that act and learn.

    They are functions of modules, so that they can be pickled for child processes.
    """

    config: type[ConfigT]
    network: Callable[[ConfigT, Env], NetworkT]
    """Creates the network of a run."""
    policy: "Callable[[NetworkT, torch.device, int], Policy]"
    """How the network acts in evaluation, given a seed."""
    algorithm: Callable[[ContextT], AlgorithmT_co]
    target_frames: Callable[[ConfigT], int] = no_target_network
    """Emulator frames between two copies of theta to theta_minus; 0 without a target network."""

    def config_of(self, spec: RunSpec) -> ConfigT:
        """The run's config, which is of this algorithm's type."""
        return config_of(spec, self.config)


class CreateLearner(Protocol):
    """Creates the learner of a run, in a process where `prepare_torch` has been called."""

    def __call__(self, spec: RunSpec, *, restored: bool = False) -> Learner:
        """Create it.

        Args:
            spec: the run.
            restored: whether `Learner.restore` follows. Random play before training is then left out.
        """


class Method(NamedTuple):
    """What the training loop and the evaluation need of an algorithm: the `METHOD` of its module."""

    learner: CreateLearner
    network: Callable[[Any, Env], Any]
    """Creates the module whose parameters are a checkpoint's theta, given the run's config."""
    policy: "Callable[[Any, torch.device, int], Policy]"
    """How such a network acts in evaluation, given a seed."""
    factories: Any = None
    """The `AlgorithmFactories` from which a framework's learner creates the algorithm; None without one."""


def config_of(spec: RunSpec, kind: type[ConfigT]) -> ConfigT:
    """The run's config as its algorithm's type.

    Raises:
        TypeError: it is another algorithm's.
    """
    if not isinstance(spec.config, kind):
        raise TypeError(f"{spec.algorithm} needs a {kind.__name__}, not a {type(spec.config).__name__}")
    return spec.config
