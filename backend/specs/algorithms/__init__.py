"""The catalogue of algorithms, one entry per id."""

from backend.specs.algorithms.a3c import A3C
from backend.specs.algorithms.async_q import N_STEP_Q, ONE_STEP_Q, ONE_STEP_SARSA
from backend.specs.algorithms.base import (
    Algorithm,
    AlgorithmConfig,
    Preset,
    Reproducibility,
)
from backend.specs.algorithms.dqn import DQN
from backend.specs.algorithms.ga3c import GA3C
from backend.specs.algorithms.gorila import GORILA_DQN
from backend.specs.algorithms.paac import PAAC
from backend.specs.algorithms.paac_q import PAAC_Q

ALGORITHMS: dict[str, Algorithm] = {
    algorithm.id: algorithm
    for algorithm in (
        PAAC,
        PAAC_Q,
        GA3C,
        A3C,
        N_STEP_Q,
        ONE_STEP_Q,
        ONE_STEP_SARSA,
        DQN,
        GORILA_DQN,
    )
}
"""Every algorithm that a run can use, by id."""

__all__ = [
    "ALGORITHMS",
    "Actions",
    "Algorithm",
    "AlgorithmConfig",
    "Observation",
    "Preset",
    "Reproducibility",
]
