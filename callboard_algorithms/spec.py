"""What the spec of an algorithm is declared with: settings, sources, presets, and specs that it may extend.

Needs pydantic only.
"""

from backend.specs.algorithms.base import OPERATION_SOURCES, Algorithm, AlgorithmConfig, Preset
from backend.specs.algorithms.dqn import DQN, DqnConfig
from backend.specs.algorithms.memory import RunFacts
from backend.specs.algorithms.paac import PAAC, PaacConfig
from backend.specs.algorithms.ppo import PPO, PpoConfig
from backend.specs.algorithms.synchronous import SYNCHRONOUS_SOURCES, RmsPropConfig, SynchronousConfig
from backend.specs.constants import Source, Sources, ours
from backend.specs.environments.custom import CustomEnvironmentEntry
from backend.specs.fields import setting
from backend.specs.metrics import Metric, Panel

__all__ = [
    "DQN",
    "OPERATION_SOURCES",
    "PAAC",
    "PPO",
    "SYNCHRONOUS_SOURCES",
    "Algorithm",
    "AlgorithmConfig",
    "CustomEnvironmentEntry",
    "DqnConfig",
    "Metric",
    "PaacConfig",
    "Panel",
    "PpoConfig",
    "Preset",
    "RmsPropConfig",
    "RunFacts",
    "Source",
    "Sources",
    "SynchronousConfig",
    "ours",
    "setting",
]
