"""Gorila DQN: actors, learners, replay and parameters distributed over machines (Nair et al. 2015)."""

from math import ceil
from typing import Any, Literal

from pydantic import ValidationInfo, field_validator

from backend.specs.algorithms.base import Algorithm, Preset
from backend.specs.algorithms.common import LEARNING_RATE, OPTIMIZER, PAPER_FRAMES
from backend.specs.algorithms.memory import ENV_FORK_SERVER_BYTES, KERNELS_BYTES, MIB, RunFacts
from backend.specs.algorithms.replayed import (
    LEARNING_STARTS,
    REPLAY_CAPACITY,
    REPLAYED_PANELS,
    REPLAYED_SOURCES,
    TARGET_UPDATE,
    ReplayedQConfig,
)
from backend.specs.constants import MNIH_2015, NAIR_2015, Source, ours
from backend.specs.fields import setting
from backend.specs.metrics import Metric, Panel

MAX_PARTS = 1_024
RAY_BYTES = 450 * MIB
"""Ray's own processes."""
RAY_PROCESS_BYTES = 250 * MIB
"""A process that Ray runs, with PyTorch and its part of the object store."""

_SOURCES = REPLAYED_SOURCES | {
    "evaluation_episodes": Source("Nair 2015, 5.2"),
    "network": Source(NAIR_2015),
    "optimizer": Source("Nair 2015, 4.2"),
    "learning_rate": ours("Not stated.", "Nair 2015, 4.2"),
    "rmsprop_eps": Source(MNIH_2015, note="Nair 2015 states none for AdaGrad; this is DQN's."),
    "agent_steps_per_update": Source(
        "Nair 2015, algorithm 1",
        1,
        "As DQN, whose set-up section 5.1 follows; algorithm 1 has every step.",
    ),
    "target_update_updates": Source(NAIR_2015),
    "replay_capacity": Source(
        NAIR_2015,
        100_000_000,
        "1,000,000 for each of 100 actors (section 4: M N_act), of 7 kB each. Ours is of all bundles "
        "together: 10,000 each.",
    ),
    "learning_starts_agent_steps": Source(
        MNIH_2015, note="Of all bundles together, 500 each; Nair 2015 states none."
    ),
    "exploration_eps": Source(NAIR_2015),
    "exploration_anneal_updates": Source(NAIR_2015),
    "replay": Source(NAIR_2015),
    "n_actors": Source(NAIR_2015),
    "n_learners": Source(NAIR_2015),
    "n_shards": Source(NAIR_2015),
    "n_replay_shards": ours("Not stated; used by the global replay only.", "Nair 2015, 4"),
    "parts_per_process": ours("The paper uses a machine for each part."),
    "pull_interval": Source("Nair 2015, algorithm 1"),
    "max_gradient_staleness": ours("Not stated.", "Nair 2015, 4.2"),
    "outlier_deviations": ours("The paper states several.", "Nair 2015, 4.2"),
    "snapshot_interval_s": ours("Operation only: what a failed shard loses."),
}


class GorilaConfig(ReplayedQConfig):
    """Settings of Gorila DQN. The defaults are the paper's (section 5.1), else DQN's."""

    optimizer: Literal["adagrad", "centred_rmsprop"] = OPTIMIZER(
        "adagrad",
        description="adagrad: Gorila's; its steps shrink as squared gradients accumulate. centred_rmsprop: "
        "DQN's.",
    )
    learning_rate: float = LEARNING_RATE(
        0.001,
        description="Step size for gradients summed over a minibatch. The paper gives none.",
    )
    replay_capacity: int = REPLAY_CAPACITY(
        1_000_000,
        description="Maximum number of agent steps in all replay memories together: each bundle, actor or "
        "replay shard has an equal part, 10,000 for each of 100 bundles. The paper has 1,000,000 each. One "
        "of Atari takes 7 kB.",
    )
    learning_starts_agent_steps: int = LEARNING_STARTS(
        50_000,
        description="Agent steps in all replay memories together before the first update; each memory waits "
        "for its equal part.",
    )
    target_update_updates: int = TARGET_UPDATE(
        60_000,
        description="Updates of θ⁺, by all learners, between two updates of the target networks.",
    )
    exploration_anneal_updates: int = setting(
        1_000_000,
        ge=0,
        le=10**12,
        title="Epsilon annealed over",
        group="exploration",
        unit="updates",
        description="Updates of θ⁺ over which epsilon falls from 1 to its final value.",
    )
    replay: Literal["bundled", "local", "global"] = setting(
        "bundled",
        title="Replay",
        group="parallelism",
        description="bundled: each learner has its own actor and replay. local: each actor's replay is on "
        "its machine and serves any learner. global: the experience of all actors is sharded.",
    )
    n_actors: int = setting(
        100,
        ge=1,
        le=MAX_PARTS,
        symbol="N_act",
        title="Actors",
        common=True,
        group="parallelism",
        description="Processes that each step one environment.",
    )
    n_learners: int = setting(
        100,
        ge=1,
        le=MAX_PARTS,
        symbol="N_learn",
        title="Learners",
        common=True,
        group="parallelism",
        description="Learners that each compute gradients. Bundled learners need one actor each.",
    )
    n_shards: int = setting(
        31,
        ge=1,
        le=MAX_PARTS,
        symbol="N_param",
        title="Parameter shards",
        group="parallelism",
        description="Parameter shards that hold θ⁺ and the optimizer's state.",
    )
    n_replay_shards: int = setting(
        8,
        ge=1,
        le=MAX_PARTS,
        title="Replay shards",
        group="parallelism",
        description="Shards of the global replay; not used by the other kinds of replay.",
    )
    parts_per_process: int = setting(
        1,
        ge=1,
        le=MAX_PARTS,
        title="Parts per process",
        group="parallelism",
        description="Actors, learners, bundles or shards that share one process. 1: one process each, as in "
        "the paper.",
    )
    pull_interval: int = setting(
        1,
        ge=1,
        le=10_000,
        title="Pull interval",
        live=True,
        group="parallelism",
        unit="agent steps",
        description="Agent steps of an actor, or updates of a learner, between two checks for newer "
        "parameters.",
    )
    max_gradient_staleness: int = setting(
        500,
        ge=0,
        le=10**9,
        title="Maximum gradient staleness",
        group="optimisation",
        unit="updates",
        description="A shard discards gradients of parameters that are older than this many updates. The "
        "paper gives no number.",
    )
    outlier_deviations: float = setting(
        4.0,
        ge=0,
        le=1_000,
        title="Outlier bound",
        live=True,
        group="optimisation",
        unit="standard deviations",
        description="A learner discards gradients whose absolute loss exceeds its mean by this many "
        'standard deviations. The paper states "several"; 0 disables the check.',
    )
    snapshot_interval_s: float = setting(
        5.0,
        ge=0.1,
        le=3_600,
        title="Snapshot interval",
        live=True,
        group="parallelism",
        unit="s",
        description="How often each parameter shard is copied to the engine: the most that a failed shard "
        "loses.",
    )

    @field_validator("n_learners")
    @classmethod
    def _one_each(cls, value: int, info: ValidationInfo) -> int:
        actors = info.data.get("n_actors", value)
        if info.data.get("replay") == "bundled" and value != actors:
            raise ValueError(f"must equal n_actors ({actors}) when the replay is bundled")
        return value

    @property
    def env_processes(self) -> int:
        """Processes of actors."""
        return ceil(self.n_actors / self.parts_per_process)

    @property
    def ray_processes(self) -> int:
        """Processes of actors, learners, parameter shards and replay memories."""
        c, n = self, self.parts_per_process
        learners = 0 if c.replay == "bundled" else ceil(c.n_learners / n)
        replays = {"bundled": 0, "local": c.n_actors, "global": c.n_replay_shards}[c.replay]
        return self.env_processes + learners + ceil(c.n_shards / n) + ceil(replays / n)

    def training_bytes(self, run: RunFacts) -> int:
        """Memory of Ray, all processes, the environments, the replay and the learners' minibatches."""
        learners = self.n_learners * 2 * self.batch_size * run.decision_bytes
        return (
            RAY_BYTES
            + run.fork_server_bytes(ENV_FORK_SERVER_BYTES)
            + self.ray_processes * (RAY_PROCESS_BYTES + (KERNELS_BYTES if self.centre else 0))
            + self.n_actors * run.emulator_bytes
            + learners
            + self.replay_bytes(run)
        )


_TWO_CPU_CORES: dict[str, Any] = {
    "network": "nips",
    "n_actors": 2,
    "n_learners": 2,
    "n_shards": 2,
    "parts_per_process": 2,
    "pull_interval": 4,
    "replay_capacity": 100_000,
    "exploration_eps": 0.05,
    "learning_rate": 0.01,
}
_PAPER: dict[str, Any] = {"agent_steps_per_update": 1, "replay_capacity": 100_000_000}
"""What the paper has besides the defaults."""

_PANELS = (
    *REPLAYED_PANELS,
    Panel(
        "traffic",
        "Gradient pushes and parameter pulls",
        "Per second",
        {"gorila/pushes_per_s": "pushes", "gorila/pulls_per_s": "pulls"},
    ),
    Panel(
        "bytes",
        "Transfer rate",
        "Bytes/s",
        {"gorila/push_bytes_per_s": "pushed", "gorila/pull_bytes_per_s": "pulled"},
    ),
    Panel(
        "staleness",
        "Gradient staleness",
        "Updates",
        {"gorila/gradient_staleness": "mean", "gorila/gradient_staleness_max": "max"},
    ),
    Panel(
        "staleness_share",
        "Gradient staleness distribution",
        "Share",
        {"gorila/gradient_staleness_share": ""},
        stacked=True,
    ),
    Panel(
        "discards",
        "Discarded and lost updates",
        "Count in this attempt",
        {
            "gorila/stale_discards": "stale gradients",
            "gorila/outlier_discards": "outliers",
            "gorila/lost_pushes": "lost pushes",
            "gorila/lost_updates": "lost updates",
            "gorila/lost_chunks": "lost chunks",
            "gorila/replay_detours": "replay detours",
        },
    ),
    Panel("shards", "Parameter shards", "Updates", {"gorila/shard_updates": ""}),
    Panel("versions", "Parameter versions of the actors", "Updates", {"gorila/version_seen": ""}),
    Panel("actor_episodes", "Episodes per actor", "Episodes", {"gorila/episodes": ""}),
)

_METRICS = {
    "gorila/gradient_staleness": Metric("Gradient staleness", "Updates"),
    "gorila/gradient_staleness_max": Metric("Gradient staleness, maximum", "Updates"),
    "gorila/stale_discards": Metric("Stale gradients discarded", "Count in the attempt"),
    "gorila/outlier_discards": Metric("Outliers discarded", "Count in the attempt"),
}

GORILA_DQN = Algorithm(
    id="gorila_dqn",
    title="Gorila DQN",
    summary="DQN distributed over processes and machines: actors, learners, sharded replay, sharded "
    "parameters.",
    paper="Nair et al. 2015, Massively Parallel Methods for Deep Reinforcement Learning",
    config=GorilaConfig,
    sources=_SOURCES,
    observations=("pixels", "vector"),
    reproducibility="none",
    action_values=True,
    metrics=_METRICS,
    panels=_PANELS,
    evaluation_protocol="noop_starts_5min",
    extra="gorila",
    devices=("cpu",),
    presets=(
        Preset(
            id="quarter-hour",
            title="15 minutes",
            description="About 15 minutes on two CPU cores: two bundles, two shards, the smaller network, "
            "early learning and little exploration.",
            observation="pixels",
            config=_TWO_CPU_CORES
            | {
                "learning_starts_agent_steps": 5_000,
                "target_update_updates": 1_000,
                "exploration_anneal_updates": 12_500,
                "evaluation_interval_agent_steps": 50_000,
            },
            stop={"agent_steps": 150_000},
            measured="Assault, noop_starts_5min, full frame, not standardised, one seed: 309, 295 and 328 at "
            "50,000, 100,000 and 150,000 agent steps (20 minutes, with other work on the machine); going on, "
            "391 at 200,000. Random play 222.",
        ),
        Preset(
            id="paper",
            title="As in the paper",
            description="The paper's constants: 100 bundles and 31 parameter shards, each a process, each "
            "bundle with a replay memory of a million agent steps (7 GB once full), for a cluster. An update "
            "at every agent step. The paper trained for up to six days.",
            observation="pixels",
            families=("atari",),
            config=_PAPER,
            environment_config=PAPER_FRAMES,
            stop={"agent_steps": 10_000_000},
            measured="With an update every 4 agent steps it reported nothing within 400 s.",
        ),
        Preset(
            id="paper-one-memory",
            title="As in the paper, memory of one machine",
            description="The paper's constants, but a million agent steps in the replay memories of all 100 "
            "bundles together, as DQN has: 10,000 each, 7 GB in all.",
            observation="pixels",
            families=("atari",),
            config=_PAPER | {"replay_capacity": 1_000_000},
            environment_config=PAPER_FRAMES,
            stop={"agent_steps": 10_000_000},
        ),
        Preset(
            id="two-cpu-cores",
            title="2 CPU cores",
            description="For a small machine: two bundles, two shards, the smaller network, a tenth of the "
            "replay memory (0.7 GB); actors pull parameters every fourth agent step.",
            observation="pixels",
            config=_TWO_CPU_CORES
            | {
                "learning_starts_agent_steps": 10_000,
                "target_update_updates": 2_500,
                "exploration_anneal_updates": 60_000,
                "evaluation_interval_agent_steps": 250_000,
            },
            stop={"agent_steps": 2_000_000},
        ),
    ),
    vector_defaults={
        "network": "mlp",
        "learning_rate": 0.01,
        "reward_clip": 0.0,
        "n_actors": 2,
        "n_learners": 2,
        "n_shards": 2,
        "n_replay_shards": 2,
        "parts_per_process": 2,
        "pull_interval": 4,
        "target_update_updates": 250,
        "replay_capacity": 50_000,
        "learning_starts_agent_steps": 1_000,
        "exploration_anneal_updates": 2_500,
        "exploration_eps": 0.05,
        "evaluation_interval_agent_steps": 100_000,
    },
)
