"""Settings shared by the methods of PAAC's framework (Clemente et al. 2017, section 3)."""

from typing import Literal

from backend.specs.algorithms.base import OPERATION_SOURCES, AlgorithmConfig
from backend.specs.algorithms.common import (
    CENTRE,
    GAMMA,
    LEARNING_RATE,
    LEARNING_RATE_SCHEDULE,
    MAX_GRAD_NORM,
    PRECISION,
    REWARD_CLIP,
    RMSPROP_EPS,
    RMSPROP_INITIAL_G,
    T_MAX,
    lower_advice,
    network_conflicts,
    network_setting,
    precision_advice,
    schedule_conflicts,
)
from backend.specs.algorithms.memory import (
    ENV_FORK_SERVER_BYTES,
    KERNELS_BYTES,
    LEARNER_FORK_SERVER_BYTES,
    LEARNER_PROCESS_BYTES,
    LEARNING_BYTES,
    NETWORK_BYTES,
    Network,
    RunFacts,
)
from backend.specs.constants import CLEMENTE_2017, CLEMENTE_CODE, Source, Sources, ours
from backend.specs.fields import setting

PAPER = "Clemente, Castejón and Chandra 2017, Efficient Parallel Methods for Deep Reinforcement Learning"

SYNCHRONOUS_SOURCES: Sources = OPERATION_SOURCES | {
    "evaluation_episodes": Source("Clemente 2017, table 1"),
    "network": Source(CLEMENTE_2017),
    "precision": ours("fp32 is TensorFlow's default."),
    "learning_rate": Source(CLEMENTE_2017),
    "scale_learning_rate": Source(
        CLEMENTE_2017,
        note="Section 5.2 compares numbers of environments with 0.0007 nₑ, which is 0.0224 for 32.",
    ),
    "learning_rate_schedule": ours("The paper states one learning rate and no schedule."),
    "gamma": Source(CLEMENTE_2017),
    "rmsprop_decay": Source(CLEMENTE_2017),
    "rmsprop_eps": Source(CLEMENTE_2017),
    "rmsprop_initial_g": ours("The paper states none. TensorFlow's RMSProp starts at 1."),
    "gradient_scale": Source("Clemente 2017, algorithm 1"),
    "max_grad_norm": Source(CLEMENTE_2017),
    "reward_clip": Source(CLEMENTE_CODE),
    "n_e": Source(CLEMENTE_2017),
    "n_w": Source(CLEMENTE_2017),
    "t_max": Source(CLEMENTE_2017),
}
"""Sources of the settings of the framework."""


class SynchronousConfig(AlgorithmConfig):
    """Settings of the framework. The defaults are those of the paper's section 5.1."""

    network: Network = network_setting("nips")
    centre: bool = CENTRE
    precision: Literal["fp32", "bf16"] = PRECISION
    learning_rate: float = LEARNING_RATE(
        0.0224,
        symbol="α",
        description="Step size of RMSProp. The paper uses 0.0007 per environment, for 32 environments.",
    )
    scale_learning_rate: bool = setting(
        False,
        title="Learning rate proportional to nₑ",
        group="optimisation",
        description="Multiplies the learning rate by nₑ/32, as in the paper's comparison of numbers of "
        "environments (0.0007 nₑ).",
    )
    learning_rate_schedule: Literal["constant", "linear"] = LEARNING_RATE_SCHEDULE
    gamma: float = GAMMA
    rmsprop_decay: float = setting(
        0.99,
        ge=0,
        lt=1,
        title="RMSProp decay",
        group="optimisation",
        description="Decay of the running mean of squared gradients.",
    )
    rmsprop_eps: float = RMSPROP_EPS
    rmsprop_initial_g: float = RMSPROP_INITIAL_G
    gradient_scale: float = setting(
        1.0,
        gt=0,
        le=1_000,
        title="Gradient scale",
        live=True,
        group="optimisation",
        description="Multiplies the averaged gradient before clipping: 1 in the paper's text, 5 (t_max) in "
        "its authors' code.",
    )
    max_grad_norm: float = MAX_GRAD_NORM(
        40.0,
        description="Gradients with a larger norm are scaled down to it.",
    )
    reward_clip: float = REWARD_CLIP
    n_e: int = setting(
        32,
        ge=1,
        le=512,
        symbol="nₑ",
        title="Environments",
        common=True,
        group="parallelism",
        description="Environments stepped in parallel: the batch size of one inference.",
    )
    n_w: int = setting(
        8,
        ge=1,
        le=64,
        symbol="n_w",
        title="Workers",
        common=True,
        group="parallelism",
        description="Processes that step the environments. More processes than cores gain nothing.",
    )
    t_max: int = T_MAX(
        5,
        description="Agent steps of each environment between two updates.",
    )

    @property
    def env_processes(self) -> int:
        """The workers."""
        return min(self.n_w, self.n_e)

    def training_bytes(self, run: RunFacts) -> int:
        """Memory of the workers, the environments and the decisions of a rollout."""
        workers = self.env_processes
        environment = run.emulator_bytes + (self.t_max + 2) * run.decision_bytes
        if workers == 1:
            return LEARNING_BYTES + run.fork_server_bytes(ENV_FORK_SERVER_BYTES) + self.n_e * environment
        worker = LEARNER_PROCESS_BYTES + 2 * NETWORK_BYTES[self.network]
        loaded = LEARNER_FORK_SERVER_BYTES + (KERNELS_BYTES if self.centre else 0)
        return run.fork_server_bytes(loaded) + workers * worker + self.n_e * environment

    def gpu_memory_advice(self) -> list[str]:
        """Fewer environments, whose decisions an update computes together, or half their activations."""
        return [*lower_advice(n_e=self.n_e), *precision_advice(self.precision)]

    def conflicts(self, run: RunFacts) -> dict[str, str]:
        """Errors of the network and of the learning rate schedule."""
        network = network_conflicts(self.network, run, centre=self.centre)
        return network | schedule_conflicts(self.learning_rate_schedule, run)
