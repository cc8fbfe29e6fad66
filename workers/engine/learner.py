"""What every algorithm offers the training loop, which knows nothing else of it."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from backend.specs.algorithms import AlgorithmConfig
from workers.engine.recording import EpisodeRecorder


@dataclass(slots=True)
class EpisodeEnd:
    """A finished training episode."""

    source: str
    """Which actor played it; empty where there is one policy for all."""
    seed: int
    episode_return: float
    length_steps: int
    length_frames: int
    crashed: bool = False
    """The world broke: only a warning is left of it."""
    recording: EpisodeRecorder | None = None
    """The whole episode, where it was recorded."""


@dataclass(slots=True)
class Advance:
    """What one call of `Learner.advance` did."""

    agent_steps: int
    frames: int
    updates: int
    episodes: list[EpisodeEnd] = field(default_factory=list)
    internals: dict[str, float] = field(default_factory=dict)
    """Metric name -> value, such as `loss/policy`."""
    of_sources: dict[str, dict[str, float]] = field(default_factory=dict)
    """Source -> metric name -> value, of what each actor has its own."""
    pictures: list[bytes] = field(default_factory=list)
    """JPEGs of the play, while someone watches."""
    warnings: list[str] = field(default_factory=list)
    """What went wrong and was mended, for the run's log."""


class Policy(Protocol):
    """How an agent acts when it is evaluated."""

    def act(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Actions (N,), values V or max Q (N,), and pi or Q (N, A) for the states of N environments.

        Args:
            observation_N: (N, …).
            environment_N: (N,) which environments they are, for policies with a memory.
        """

    def forget(self, environment: int) -> None:
        """An episode ended in this environment; its next state is another's first."""


class Learner(Protocol):
    """One algorithm at work on one run."""

    device: str
    action_names: tuple[str, ...]

    def advance(self, progress: float, *, watched: bool) -> Advance:
        """Train a little (one update, or a fraction of a second).

        Args:
            progress: share of the run's agent-step bound that is done, for schedules.
            watched: whether someone wants to see the play.
        """

    def change(self, config: AlgorithmConfig) -> None:
        """Go on with other settings; only live fields differ."""

    def policy(self, seed: int) -> Policy:
        """The present policy, as it is evaluated, with randomness of its own."""

    def state(self) -> dict[str, Any]:
        """Tensors and plain values from which `restore` goes on."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""

    def close(self) -> None:
        """End every process and thread it started."""
