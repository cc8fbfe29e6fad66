"""Settings shared by the asynchronous methods of Mnih et al. 2016."""

from typing import Any, Literal, get_args

from backend.specs.algorithms.base import OPERATION_SOURCES, AlgorithmConfig
from backend.specs.algorithms.common import (
    CENTRE,
    GAMMA,
    LARGE_NETWORK,
    LEARNING_RATE,
    MAX_GRAD_NORM,
    OPTIMIZER,
    REWARD_CLIP,
    RMSPROP_DECAY,
    RMSPROP_EPS,
    RMSPROP_INITIAL_G,
    T_MAX,
    network_conflicts,
    network_setting,
    schedule_conflicts,
)
from backend.specs.algorithms.memory import (
    LEARNER_FORK_SERVER_BYTES,
    LEARNER_PROCESS_BYTES,
    MIB,
    NetworkOrLarge,
    RunFacts,
    network_bytes,
)
from backend.specs.constants import MNIH_2015, S7, S8, Source, Sources, ours
from backend.specs.fields import setting

PAPER = "Mnih et al. 2016, Asynchronous Methods for Deep Reinforcement Learning"
MAX_ACTORS = 64
SHARED_BYTES = 150 * MIB
"""What actors need only once, in addition to the process that they are forked from."""
SMALL_PIXELS: dict[str, Any] = {
    "n_actors": 2,
    "network": "compact",
    "t_max": 11,
    "optimizer": "shared_adam",
    "learning_rate_schedule": "constant",
    "evaluation_interval_agent_steps": 20_000,
}
"""For small environments with pixel observations: minutes on two CPU cores."""

ASYNCHRONOUS_SOURCES: Sources = OPERATION_SOURCES | {
    "evaluation_episodes": ours(
        "As in the other papers; this paper's tables use 100 human starts instead.", "Mnih 2016, 5.1"
    ),
    "network": Source(S8, note="Section 5.1 names the network of Mnih 2015 for the 57-game agent."),
    "n_actors": Source(S8),
    "optimizer": Source(S8),
    "learning_rate": ours("The paper samples LogUniform(1e-4, 1e-2); an author mentions 0.0007.", S8),
    "learning_rate_schedule": Source(S8),
    "gamma": Source(S8),
    "rmsprop_decay": Source(S8),
    "rmsprop_eps": ours(
        "Not stated; 0.1 is the value of Clemente 2017 and of Babaeizadeh's code.", "Mnih 2016, eq. 1"
    ),
    "rmsprop_initial_g": ours("Not stated, and no code is published.", "Mnih 2016, eq. 1"),
    "momentum": ours("Not stated; RMSProp's decay. Used by momentum_sgd only.", S7),
    "max_grad_norm": ours(
        "Tuned on six games, but not stated; 40 is the value of Clemente 2017.", "Mnih 2016, 5.1"
    ),
    "reward_clip": Source(MNIH_2015),
    "t_max": Source(S8),
}
"""Sources of the settings of every asynchronous method."""


class AsynchronousConfig(AlgorithmConfig):
    """Settings of every asynchronous method. The defaults are those of the paper's supplement, section 8."""

    network: NetworkOrLarge = network_setting("nips", LARGE_NETWORK)
    centre: bool = CENTRE
    n_actors: int = setting(
        16,
        ge=1,
        le=MAX_ACTORS,
        title="Actor-learners",
        live=True,
        common=True,
        group="parallelism",
        description="Processes that each act and learn independently. They do not wait for each other, so a "
        "few per core are useful.",
    )
    optimizer: Literal["shared_rmsprop", "rmsprop", "momentum_sgd", "shared_adam"] = OPTIMIZER(
        "shared_rmsprop",
        description="shared_rmsprop: one mean of squared gradients for all actors, the paper's choice. "
        "rmsprop, momentum_sgd: separate statistics for each actor. shared_adam: Adam with shared "
        "statistics.",
    )
    learning_rate: float = LEARNING_RATE(
        0.0007,
        description="Step size. The paper sampled it between 0.0001 and 0.01; an author mentions 0.0007.",
    )
    learning_rate_schedule: Literal["linear", "constant"] = setting(
        "linear",
        title="Learning rate schedule",
        group="optimisation",
        description="linear: annealed to 0 at the run's agent-step limit, as in the paper. constant: not "
        "annealed.",
    )
    gamma: float = GAMMA
    rmsprop_decay: float = RMSPROP_DECAY
    rmsprop_eps: float = RMSPROP_EPS
    rmsprop_initial_g: float = RMSPROP_INITIAL_G
    momentum: float = setting(
        0.99,
        ge=0,
        lt=1,
        symbol="α",
        title="Momentum",
        group="optimisation",
        description="Decay of past gradients in momentum_sgd.",
    )
    max_grad_norm: float = MAX_GRAD_NORM(
        40.0,
        description="Gradients with a larger norm are scaled down to it.",
    )
    reward_clip: float = REWARD_CLIP
    t_max: int = T_MAX(
        5,
        ge=0,
        description="Agent steps of an actor between two updates. 0: one update per episode, with full "
        "returns.",
    )

    @property
    def env_processes(self) -> int:
        """Each actor-learner steps one environment."""
        return self.n_actors

    @property
    def network_bytes(self) -> int:
        """One copy of the parameters."""
        return network_bytes(self.network)

    def decision_bytes(self, run: RunFacts) -> int:
        """A decision of an update: its observation and activations."""
        return run.decision_bytes

    def training_bytes(self, run: RunFacts) -> int:
        """Memory of the actor-learners, each with a network, an environment and an update's decisions."""
        decisions = (self.t_max or run.longest_episode_agent_steps) * self.decision_bytes(run)
        networks = 2 * self.network_bytes
        actor = LEARNER_PROCESS_BYTES + networks + run.emulator_bytes + decisions
        return run.fork_server_bytes(LEARNER_FORK_SERVER_BYTES) + SHARED_BYTES + self.n_actors * actor

    def conflicts(self, run: RunFacts) -> dict[str, str]:
        """Errors of the network and of the learning rate schedule."""
        choices = get_args(type(self).model_fields["network"].annotation)
        network = network_conflicts(self.network, run, centre=self.centre, choices=choices)
        return network | schedule_conflicts(self.learning_rate_schedule, run)
