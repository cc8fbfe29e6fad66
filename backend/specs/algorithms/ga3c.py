"""GA3C: A3C with one model behind predictors and trainers (Babaeizadeh et al. 2017)."""

from math import ceil
from typing import Any, Literal, get_args

from backend.specs.algorithms.base import OPERATION_SOURCES, Algorithm, AlgorithmConfig, Preset
from backend.specs.algorithms.common import (
    BETA,
    CENTRE,
    FIRST_LAYER_STRIDE,
    GAMMA,
    LEARNING_RATE,
    LEARNING_RATE_SCHEDULE,
    LUMINANCE_THEN,
    MAX_GRAD_NORM,
    PAPER_FRAMES,
    REWARD_CLIP,
    RMSPROP_DECAY,
    RMSPROP_EPS,
    RMSPROP_INITIAL_G,
    T_MAX,
    VALUE_COEFFICIENT,
    lower_advice,
    network_conflicts,
    schedule_conflicts,
)
from backend.specs.algorithms.memory import (
    ENV_FORK_SERVER_BYTES,
    ENV_PROCESS_BYTES,
    LEARNING_BYTES,
    MAX_STRIDE,
    RunFacts,
    network_bytes,
)
from backend.specs.constants import BABAEIZADEH_CODE, TENSORFLOW, Source, ours
from backend.specs.fields import setting
from backend.specs.metrics import Metric, Panel

MAX_AGENTS = 256
MAX_THREADS = 16
MAX_AGENTS_PER_PROCESS = 32
"""What all of them may be notified of must fit into a socket's buffer, or a process that waits for trainers
and trainers that notify it would wait for each other."""
SEGMENTS = 4
"""Submissions of an agent that may wait for trainers; the agent waits before it submits a fifth."""
PAPERS_BEST_AGENTS = 128
"""N_A with the highest TPS in the paper's Figure 3."""

_TWO_CPU_CORES: dict[str, Any] = {
    "n_actors": 16,
    "agents_per_process": 8,
    "n_predictors": 1,
    "n_trainers": 1,
    "min_training_batch": 40,
    "adjustment_interval_s": 0.0,
    "learning_rate": 7e-4,
    "learning_rate_schedule": "linear",
    "rmsprop_eps": 1e-10,
    "value_coefficient": 0.5,
    "evaluation_interval_agent_steps": 500_000,
}

Ga3cNetwork = Literal["nips", "nature", "large", "mlp"]

_SOURCES = OPERATION_SOURCES | {
    "evaluation_episodes": Source("Babaeizadeh 2017, table 3"),
    "network": Source("Babaeizadeh 2017, 3.2"),
    "first_layer_stride": Source("Babaeizadeh 2017, 5.1, note 2"),
    "learning_rate": Source("Babaeizadeh 2017, fig. 6"),
    "learning_rate_schedule": Source(BABAEIZADEH_CODE),
    "gamma": Source(BABAEIZADEH_CODE),
    "rmsprop_decay": Source(BABAEIZADEH_CODE),
    "rmsprop_eps": Source(BABAEIZADEH_CODE),
    "rmsprop_initial_g": Source(BABAEIZADEH_CODE, 1.0, TENSORFLOW),
    "value_coefficient": Source("Babaeizadeh 2017, eq. 2"),
    "max_grad_norm": Source("Babaeizadeh 2017, 4.4"),
    "reward_clip": Source(BABAEIZADEH_CODE),
    "log_eps": Source(BABAEIZADEH_CODE),
    "beta": Source(BABAEIZADEH_CODE),
    "n_actors": Source(BABAEIZADEH_CODE),
    "agents_per_process": Source("Babaeizadeh 2017, 4.1"),
    "n_predictors": Source("Babaeizadeh 2017, 4.3"),
    "n_trainers": Source("Babaeizadeh 2017, 4.3"),
    "min_training_batch": Source("Babaeizadeh 2017, 5.3"),
    "t_max": Source("Babaeizadeh 2017, 3.2"),
    "adjustment_interval_s": Source("Babaeizadeh 2017, 4.3"),
    "max_adjusted_actors": ours(
        "No limit is stated; the highest TPS is with 128 agents (figure 3), to which the preset As in the "
        "paper sets it.",
        "Babaeizadeh 2017, 4.3",
    ),
}


class Ga3cConfig(AlgorithmConfig):
    """Settings of GA3C. The defaults are the paper's, or its authors' code's where the paper gives none."""

    network: Ga3cNetwork = setting(
        "nips",
        title="Network",
        common=True,
        group="network",
        shape=True,
        description="nips: the network of Mnih et al. 2013, the paper's small one. nature: the network of "
        "Mnih et al. 2015. large: the paper's large one, with three convolutions. mlp: for vector "
        "observations.",
    )
    centre: bool = CENTRE
    first_layer_stride: int = FIRST_LAYER_STRIDE
    learning_rate: float = LEARNING_RATE(
        0.0003,
        description="Step size for gradients summed over a batch. The paper uses 0.0003 and 0.0001.",
    )
    learning_rate_schedule: Literal["constant", "linear"] = LEARNING_RATE_SCHEDULE
    gamma: float = GAMMA
    rmsprop_decay: float = RMSPROP_DECAY
    rmsprop_eps: float = RMSPROP_EPS
    rmsprop_initial_g: float = RMSPROP_INITIAL_G
    value_coefficient: float = VALUE_COEFFICIENT(
        1.0,
        description="Weight of the value loss (R - V)²: 1 in the paper's text, 0.5 in its authors' code.",
    )
    max_grad_norm: float = MAX_GRAD_NORM(
        0.0,
        gt=None,
        ge=0,
        description="Gradients with a larger norm are scaled down to it. 0, as in the paper, disables "
        "clipping.",
    )
    reward_clip: float = REWARD_CLIP
    log_eps: float = setting(
        1e-6,
        gt=0,
        le=0.1,
        symbol="ε",
        title="Logarithm epsilon",
        group="optimisation",
        description="Added to probabilities before the logarithm. It bounds the gradient when the policy "
        "lags.",
    )
    beta: float = BETA
    n_actors: int = setting(
        32,
        ge=1,
        le=MAX_AGENTS,
        symbol="N_A",
        title="Agents",
        live=True,
        common=True,
        group="parallelism",
        description="Agents that each step one environment. They have no network.",
    )
    agents_per_process: int = setting(
        1,
        ge=1,
        le=MAX_AGENTS_PER_PROCESS,
        title="Agents per process",
        group="parallelism",
        description="Agents that share one process, which steps whichever has a prediction. 1: one process "
        "each, as in the paper. Few processes for each core are faster than many.",
    )
    n_predictors: int = setting(
        2,
        ge=1,
        le=MAX_THREADS,
        symbol="N_P",
        title="Predictors",
        live=True,
        common=True,
        group="parallelism",
        description="Threads that answer prediction requests of agents. Each takes all waiting requests as "
        "one batch.",
    )
    n_trainers: int = setting(
        2,
        ge=1,
        le=MAX_THREADS,
        symbol="N_T",
        title="Trainers",
        live=True,
        common=True,
        group="parallelism",
        description="Threads that update the network from the rollouts that agents submit.",
    )
    min_training_batch: int = setting(
        1,
        ge=1,
        le=1_024,
        title="Minimum training batch",
        live=True,
        group="parallelism",
        unit="agent steps",
        description="Minimum number of agent steps per update. The paper recommends 20 to 40 for stability; "
        "its default is one rollout.",
    )
    t_max: int = T_MAX(
        5,
        le=255,
        description="Agent steps of a rollout; fewer at an episode's end.",
    )
    adjustment_interval_s: float = setting(
        60.0,
        ge=0,
        le=3_600,
        title="Adjustment interval",
        live=True,
        group="parallelism",
        unit="s",
        description="How often one of N_A, N_P and N_T is changed by ±1; the change is kept if updates per "
        "second rise. 0 keeps the configured numbers. An adjustment takes at least two seconds.",
    )
    max_adjusted_actors: int = setting(
        32,
        ge=1,
        le=MAX_AGENTS,
        title="Adjusted agents, at most",
        group="parallelism",
        description="Limit of N_A in its adjustment, for which the run reserves memory; the configured "
        "number of agents is the limit if it is higher. The paper's best configuration has 128 agents.",
    )

    @property
    def max_actors(self) -> int:
        """The maximum number of agents, for which a run reserves memory."""
        return max(self.n_actors, self.max_adjusted_actors) if self.adjustment_interval_s else self.n_actors

    @property
    def env_processes(self) -> int:
        """Processes of agents."""
        return ceil(self.max_actors / self.agents_per_process)

    def training_bytes(self, run: RunFacts) -> int:
        """Memory of the maximum number of agents, their experiences, and the model's batches."""
        experiences = SEGMENTS * (self.t_max + 1) * run.observation_bytes
        agent = run.emulator_bytes + experiences
        predictions = self.max_actors * self.n_predictors
        trained = (self.min_training_batch + self.t_max) * self.n_trainers
        return (
            LEARNING_BYTES
            + run.fork_server_bytes(ENV_FORK_SERVER_BYTES)
            + self.env_processes * ENV_PROCESS_BYTES
            + self.max_actors * agent
            + (predictions + trained) * run.decision_bytes
            + 2 * (1 + self.n_trainers) * network_bytes(self.network, self.first_layer_stride)
        )

    def gpu_memory_advice(self) -> list[str]:
        """Smaller batches of predictions and of updates, or smaller layers."""
        advice = lower_advice(
            n_trainers=self.n_trainers,
            n_predictors=self.n_predictors,
            n_actors=self.n_actors,
            min_training_batch=self.min_training_batch,
        )
        if self.network == "large" and self.first_layer_stride < MAX_STRIDE:
            advice.append(f"raise config.first_layer_stride ({self.first_layer_stride})")
        return advice

    def conflicts(self, run: RunFacts) -> dict[str, str]:
        """Errors of the network and of the learning rate schedule."""
        choices = get_args(Ga3cNetwork)
        network = network_conflicts(self.network, run, centre=self.centre, choices=choices)
        return network | schedule_conflicts(self.learning_rate_schedule, run)


_METRICS = {
    "ga3c/n_actors": Metric("Agents (N_A)", "Agents"),
    "ga3c/n_predictors": Metric("Predictors (N_P)", "Predictors"),
    "ga3c/n_trainers": Metric("Trainers (N_T)", "Trainers"),
    "ga3c/training_queue": Metric("Training queue", "Requests"),
    "ga3c/prediction_queue": Metric("Prediction queue", "Requests"),
    "ga3c/training_batch": Metric("Training batch", "Batch size"),
    "ga3c/prediction_batch": Metric("Prediction batch", "Batch size"),
    "ga3c/policy_lag": Metric("Policy lag", "Updates"),
    "ga3c/policy_lag_max": Metric("Policy lag, maximum", "Updates"),
    "speed/predictions_per_s": Metric("Predictions (PPS)", "Predictions/s"),
}
_PANELS = (
    # Every method reports updates per second; the panel is useful only with predictions per second.
    Panel(
        "rates",
        "Training and prediction throughput (TPS, PPS)",
        "Per second",
        {"speed/updates_per_s": "updates (TPS)", "speed/predictions_per_s": "predictions (PPS)"},
        needs="speed/predictions_per_s",
    ),
    Panel(
        "queues",
        "Queue lengths",
        "Requests",
        {"ga3c/training_queue": "training", "ga3c/prediction_queue": "prediction"},
    ),
    Panel(
        "batches",
        "Batch sizes",
        "Batch size",
        {"ga3c/training_batch": "training", "ga3c/prediction_batch": "prediction"},
    ),
    Panel(
        "setting",
        "Agents, predictors, trainers",
        "Count",
        {
            "ga3c/n_actors": "agents (N_A)",
            "ga3c/n_predictors": "predictors (N_P)",
            "ga3c/n_trainers": "trainers (N_T)",
        },
        stepped=True,
    ),
    Panel(
        "lag",
        "Policy lag",
        "Updates",
        {"ga3c/policy_lag": "mean", "ga3c/policy_lag_max": "max"},
    ),
    Panel("lag_share", "Policy lag distribution", "Share", {"ga3c/policy_lag_share": ""}, stacked=True),
    Panel("waiting", "Agent waiting time", "Share of time", {"ga3c/waiting_share": "waiting for an action"}),
)

GA3C = Algorithm(
    id="ga3c",
    title="GA3C",
    summary="Many agents without a network share one model behind two queues: predictors answer requests, "
    "trainers update it.",
    paper="Babaeizadeh et al. 2017, Reinforcement Learning through Asynchronous Advantage Actor-Critic "
    "on a GPU",
    config=Ga3cConfig,
    sources=_SOURCES,
    observations=("pixels", "vector"),
    reproducibility="none",
    metrics=_METRICS,
    panels=_PANELS,
    presets=(
        Preset(
            id="two-cpu-cores",
            title="2 CPU cores",
            description="For a small machine: 16 agents, one predictor, one trainer, batches of 40, and a "
            "small RMSProp epsilon, which needs fewer agent steps; an evaluation every 500,000 agent steps.",
            observation="pixels",
            config=_TWO_CPU_CORES,
            stop={"agent_steps": 10_000_000},
            measured="Pong, noop_starts, full frame, not standardised, one seed: −12.4 at 2 million agent "
            "steps, 16.0 at 3 million (42 minutes, while the test suite ran).",
        ),
        Preset(
            id="paper",
            title="As in the paper",
            description="The paper's constants: 32 agents, two predictors, two trainers, adjusted every "
            "minute up to 128 agents, for 10 million agent steps. RMSProp's mean square starts at 1, as in "
            "the authors' code. Evaluations use the paper's protocol, random_seeds. The paper trained for a "
            "day on a GPU.",
            observation="pixels",
            families=("atari",),
            config={
                "rmsprop_initial_g": 1.0,
                "max_adjusted_actors": PAPERS_BEST_AGENTS,
                "evaluation_protocol": "random_seeds",
            },
            environment_config=PAPER_FRAMES,
            stop={"agent_steps": 10_000_000},
            measured=f"{LUMINANCE_THEN} Pong, noop_starts, full frame, not standardised, one seed: −20.5 "
            "at 0.25 million agent steps, −20.1 at 0.5 million, −20.3 at 0.59 million (7 minutes).",
        ),
        Preset(
            id="full-frame-centred",
            title="Full frame, centred, 2 CPU cores",
            description="The preset 2 CPU cores, with observations centred by the mean image of random play, "
            "in which what moves is as large as it can be.",
            observation="pixels",
            families=("atari",),
            config=_TWO_CPU_CORES | {"centre": True, "evaluation_interval_agent_steps": 250_000},
            stop={"agent_steps": 10_000_000},
        ),
    ),
    vector_defaults={
        "network": "mlp",
        "learning_rate": 0.001,
        "rmsprop_eps": 1e-5,
        "value_coefficient": 0.1,
        "reward_clip": 0.0,
        "n_actors": 8,
        "n_predictors": 1,
        "n_trainers": 1,
        "min_training_batch": 40,
        "adjustment_interval_s": 0.0,
        "evaluation_interval_agent_steps": 100_000,
    },
)
