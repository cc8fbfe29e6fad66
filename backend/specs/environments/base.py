"""Settings shared by all environments, and the description of an environment in the catalogue."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import ConfigDict

from backend.specs.extras import PACKAGES
from backend.specs.fields import Strict
from backend.specs.protocols import Protocol, UnsupportedProtocolError, find_protocol
from backend.specs.spaces import Actions, Observation

USUAL_EPISODE_AGENT_STEPS = 1_000
"""Gymnasium's limit for most environments."""

MIN_CUT_AGENT_STEPS = 10_000
"""An evaluation cuts no episode before."""


class EnvironmentConfig(Strict):
    """Base class of a family's settings."""

    # `setting` describes them: reading docstrings would cost each process of an engine a tenth of a second.
    model_config = ConfigDict(use_attribute_docstrings=False)

    stacks_frames: ClassVar[bool] = False
    """Whether an observation consists of the newest frames, of which a replay memory stores each once."""

    def resized(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of observations with these settings, given that with the defaults."""
        return shape

    @property
    def longest_episode_agent_steps(self) -> int:
        """The maximum length of a training episode; gymnasium's usual limit where the settings have none."""
        return USUAL_EPISODE_AGENT_STEPS

    @property
    def evaluation_cut_agent_steps(self) -> int:
        """An evaluation's episode that has not ended after so many agent steps is cut."""
        return max(2 * self.longest_episode_agent_steps, MIN_CUT_AGENT_STEPS)

    @property
    def own_protocol(self) -> str | None:
        """The protocol that evaluates an agent in what these settings trained it for; None: no special
        one."""
        return None


@dataclass(frozen=True)
class PublishedScore:
    """A published score for an environment, with the protocol of its measurement."""

    label: str
    score: float
    protocol: str
    source: str


@dataclass(frozen=True)
class Environment:
    """An environment of the catalogue."""

    id: str
    title: str
    family: str
    summary: str
    observation: Observation
    config: type[EnvironmentConfig]
    frames_per_agent_step: int
    """With default settings."""
    action_names: tuple[str, ...]
    """Names of the discrete actions, or of the dimensions of a continuous action; with default settings."""
    protocols: tuple[str, ...] = ("plain",)
    """The evaluation protocols, each with a greedy variant; the first is the default."""
    actions: Actions = "discrete"
    observation_shape: tuple[int, ...] | None = None
    """(H, W, C) bytes or (D,) numbers, with default settings; None for a custom environment."""
    published: tuple[PublishedScore, ...] = ()
    replayable: bool = False
    """Whether an episode can quickly be replayed from its seed and actions, so that a resumed run continues
    in it."""
    config_defaults: dict[str, Any] = field(default_factory=dict)
    """Algorithm settings whose defaults differ in this environment."""
    crop_hides: float | None = None
    """Share of the changing pixels that Atari's `crop` hides, from 0 to 1; None if it was not measured."""
    memory_bytes: int = 64 * 2**10
    """Memory of one environment, without the process that steps it."""
    allowed: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Settings whose allowed values differ between the environments of a family, with the values allowed
    here."""

    @property
    def extra(self) -> str | None:
        """The extra of the distribution that a host needs in addition to `worker`; None: no other."""
        return self.family if self.family in PACKAGES else None

    def published_score(self, label: str, protocol: str) -> PublishedScore | None:
        """The published score with this label under this protocol."""
        return next(
            (score for score in self.published if (score.label, score.protocol) == (label, protocol)), None
        )

    def protocol(self, name: str) -> Protocol:
        """The evaluation protocol of this id.

        Raises:
            UnsupportedProtocolError: it does not exist here, or is not available.
        """
        return find_protocol(name, self.protocols, self.id)

    def protocol_refusal(self, choice: str) -> str | None:
        """Why a run cannot choose this protocol; None if it can."""
        if choice != "auto":
            try:
                self.protocol(choice)
            except UnsupportedProtocolError as error:
                return str(error)
        return None

    def default_protocol(self, of_paper: str, config: EnvironmentConfig) -> str:
        """The protocol of an evaluation without a choice.

        Args:
            of_paper: the protocol of the algorithm's paper.
            config: the settings of training. An agent trained with sticky actions is evaluated with them.
        """
        wanted = config.own_protocol or of_paper
        return wanted if wanted in self.protocols else self.protocols[0]

    def observed_shape(self, config: EnvironmentConfig) -> tuple[int, ...]:
        """(H, W, C) bytes or (D,) numbers of an observation; of a custom environment an upper estimate."""
        custom = (84, 84, 3) if self.observation == "pixels" else (128,)
        return config.resized(self.observation_shape or custom)

    def refusals(self, config: EnvironmentConfig) -> dict[str, str]:
        """Errors of settings whose values are not allowed in this environment, by setting."""
        values = config.model_dump()
        return {
            name: f"{self.title} allows {_listed(allowed)}, got {values[name]}"
            for name, allowed in self.allowed.items()
            if values[name] is not None and values[name] not in allowed
        }


def _listed(numbers: tuple[int, ...]) -> str:
    shown = [str(number) for number in numbers]
    return ", ".join(shown if len(shown) <= 40 else [*shown[:3], "…", shown[-1]])
