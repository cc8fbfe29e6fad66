"""Settings shared by the methods of PAAC's framework (Clemente et al. 2017, section 3)."""

from functools import partial
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
from backend.specs.metrics import Metric, Panel

PAPER = "Clemente, Castejón and Chandra 2017, Efficient Parallel Methods for Deep Reinforcement Learning"

PRINTED_N_E = 32
"""Environments for which the paper prints its learning rate."""

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
"""Sources of the settings of the framework and of its paper's optimizer."""

N_E = partial(
    setting,
    ge=1,
    le=512,
    symbol="nₑ",
    title="Environments",
    common=True,
    group="parallelism",
    description="Environments stepped in parallel: the batch size of one inference.",
)
TIME_METRICS = {
    "paac/time_environment": Metric("Time in environments", "Share of time"),
    "paac/time_choosing": Metric("Time in action selection", "Share of time"),
    "paac/time_learning": Metric("Time in learning", "Share of time"),
    "paac/time_rest": Metric("Time in communication and waiting", "Share of time"),
}
TIME_PANEL = Panel(
    "time_usage",
    "Time breakdown",
    "Share of time",
    {
        "paac/time_environment": "environments",
        "paac/time_choosing": "action selection",
        "paac/time_learning": "learning",
        "paac/time_rest": "waiting",
    },
    stacked=True,
)


class SynchronousConfig(AlgorithmConfig):
    """Settings of the framework. The defaults are those of the paper's section 5.1.

    The optimizer's own settings are those of each algorithm: `RmsPropConfig` has the paper's.
    """

    network: Network = network_setting("nips")
    centre: bool = CENTRE
    precision: Literal["fp32", "bf16"] = PRECISION
    learning_rate: float = LEARNING_RATE(
        0.0224,
        symbol="α",
        description="Step size of the optimizer. The paper uses 0.0007 per environment, for 32 environments.",
    )
    learning_rate_schedule: Literal["constant", "linear"] = LEARNING_RATE_SCHEDULE
    gamma: float = GAMMA
    max_grad_norm: float = MAX_GRAD_NORM(
        40.0,
        description="Gradients with a larger norm are scaled down to it.",
    )
    reward_clip: float = REWARD_CLIP
    n_e: int = N_E(32)
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

    @property
    def step_size(self) -> float:
        """The learning rate before annealing."""
        return self.learning_rate

    @property
    def gradient_factor(self) -> float:
        """What the mean gradient is multiplied by before it is clipped."""
        return 1.0

    def rollout_bytes(self, run: RunFacts) -> int:
        """Memory of the decisions of a rollout: those of all environments with their activations."""
        return self.n_e * (self.t_max + 2) * run.decision_bytes

    def training_bytes(self, run: RunFacts) -> int:
        """Memory of the workers, the environments and the decisions of a rollout."""
        workers = self.env_processes
        environments = self.n_e * run.emulator_bytes + self.rollout_bytes(run)
        if workers == 1:
            return LEARNING_BYTES + run.fork_server_bytes(ENV_FORK_SERVER_BYTES) + environments
        worker = LEARNER_PROCESS_BYTES + 2 * NETWORK_BYTES[self.network]
        fork_server = LEARNER_FORK_SERVER_BYTES + (KERNELS_BYTES if self.centre else 0)
        # The engine has compiled its kernels when the workers start.
        learning = max(LEARNING_BYTES, workers * worker)
        return run.fork_server_bytes(fork_server) + learning + environments

    def gpu_memory_advice(self) -> list[str]:
        """Fewer environments, whose decisions an update computes together, or half their activations."""
        return [*lower_advice(n_e=self.n_e), *precision_advice(self.precision)]

    def conflicts(self, run: RunFacts) -> dict[str, str]:
        """Errors of the network and of the learning rate schedule."""
        network = network_conflicts(self.network, run, centre=self.centre)
        return network | schedule_conflicts(self.learning_rate_schedule, run)


class RmsPropConfig(SynchronousConfig):
    """Settings of the methods that update theta once a rollout, by the RMSProp of the paper."""

    scale_learning_rate: bool = setting(
        False,
        title="Learning rate proportional to nₑ",
        group="optimisation",
        description="Multiplies the learning rate by nₑ/32, as in the paper's comparison of numbers of "
        "environments (0.0007 nₑ).",
    )
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

    @property
    def step_size(self) -> float:
        """The learning rate before annealing, in proportion to the number of environments if so set."""
        return self.learning_rate * (self.n_e / PRINTED_N_E if self.scale_learning_rate else 1)

    @property
    def gradient_factor(self) -> float:
        """The setting `gradient_scale`."""
        return self.gradient_scale
