"""Settings of the methods that learn action values with a target network and an epsilon-greedy policy."""

from backend.specs.algorithms.base import AlgorithmConfig
from backend.specs.constants import S8, Source, Sources
from backend.specs.fields import setting
from backend.specs.metrics import Panel

VALUE_SOURCES: Sources = {
    "target_update_frames": Source(S8),
    "exploration_eps": Source(S8),
    "exploration_eps_low": Source(S8),
    "exploration_eps_high": Source(S8),
    "exploration_anneal_frames": Source(S8),
}
"""Sources of these settings."""

VALUE_PANELS = (
    Panel("epsilon", "Epsilon", "Epsilon", {"exploration/epsilon": ""}),
    Panel("q", "Max Q", "Mean of max Q", {"value/max_q": "max Q"}),
)
"""Of every method that learns action values."""


class ValueConfig(AlgorithmConfig):
    """Settings of these methods. The defaults are those of Mnih et al. 2016, supplement, section 8."""

    target_update_frames: int = setting(
        40_000,
        ge=1,
        le=10**9,
        symbol="I_target",
        title="Target network period",
        group="optimisation",
        unit="frames",
        description="Emulator frames, of all actors together, between two updates of the target network.",
    )
    exploration_eps: float = setting(
        0.1,
        ge=0,
        le=1,
        symbol="ε",
        title="Final epsilon (40 % of actors)",
        live=True,
        group="exploration",
        description="Final probability of a random action of 40 % of the actors or environments.",
    )
    exploration_eps_low: float = setting(
        0.01,
        ge=0,
        le=1,
        symbol="ε",
        title="Final epsilon, low (30 %)",
        live=True,
        group="exploration",
        description="Final probability of a random action of 30 % of the actors or environments.",
    )
    exploration_eps_high: float = setting(
        0.5,
        ge=0,
        le=1,
        symbol="ε",
        title="Final epsilon, high (30 %)",
        live=True,
        group="exploration",
        description="Final probability of a random action of 30 % of the actors or environments.",
    )
    exploration_anneal_frames: int = setting(
        4_000_000,
        ge=0,
        le=10**12,
        title="Epsilon annealed over",
        group="exploration",
        unit="frames",
        description="Emulator frames over which epsilon falls from 1 to its final value.",
    )
