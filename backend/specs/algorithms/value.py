"""Settings of the methods that learn action values with a target network and explore epsilon-greedily."""

from backend.specs.algorithms.base import AlgorithmConfig
from backend.specs.fields import setting


class ValueConfig(AlgorithmConfig):
    """The defaults are those of Mnih et al. 2016, supplement, section 8."""

    target_update_frames: int = setting(
        40_000,
        ge=1,
        le=10**9,
        symbol="I_target",
        title="Target network period",
        group="optimisation",
        unit="frames",
        description="Emulator frames, of all together, between two copies of θ to the target network.",
    )
    exploration_eps: float = setting(
        0.1,
        ge=0,
        le=1,
        symbol="ε",
        title="Exploration, commonest",
        live=True,
        group="exploration",
        description="Share of random actions in the end, of 40 % of the actors or environments.",
    )
    exploration_eps_low: float = setting(
        0.01,
        ge=0,
        le=1,
        symbol="ε",
        title="Exploration, least",
        live=True,
        group="exploration",
        description="Share of random actions in the end, of 30 % of the actors or environments.",
    )
    exploration_eps_high: float = setting(
        0.5,
        ge=0,
        le=1,
        symbol="ε",
        title="Exploration, most",
        live=True,
        group="exploration",
        description="Share of random actions in the end, of 30 % of the actors or environments.",
    )
    exploration_anneal_frames: int = setting(
        4_000_000,
        ge=0,
        le=10**12,
        title="Exploration annealed over",
        group="exploration",
        unit="frames",
        description="Emulator frames in which the shares of random actions fall from 1 to those above.",
    )
