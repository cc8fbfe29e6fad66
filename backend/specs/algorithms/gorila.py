"""Gorila DQN: actors, learners, replay and parameters spread over machines (Nair et al. 2015)."""

from typing import Any, Literal

from pydantic import ValidationInfo, field_validator

from backend.specs.algorithms.base import Algorithm, Preset
from backend.specs.algorithms.replayed import ReplayedQConfig
from backend.specs.fields import setting

MAX_PARTS = 1_024


class GorilaConfig(ReplayedQConfig):
    """Settings of Gorila DQN; the defaults are the paper's (section 5.1), and DQN's where it says so."""

    optimizer: Literal["adagrad", "centred_rmsprop"] = setting(
        "adagrad",
        title="Optimizer",
        group="optimisation",
        description="adagrad: Gorila's, whose steps shrink as gradients add up; centred_rmsprop: DQN's.",
    )
    learning_rate: float = setting(
        0.001,
        gt=0,
        le=10,
        symbol="η",
        title="Learning rate",
        live=True,
        group="optimisation",
        description="Step size for gradients summed over a minibatch; the paper prints none.",
    )
    target_update_updates: int = setting(
        60_000,
        ge=1,
        le=10**9,
        symbol="N",
        title="Target network period",
        group="optimisation",
        unit="updates",
        description="Updates of θ⁺, by all learners, between two copies of it to the target networks.",
    )
    exploration_anneal_updates: int = setting(
        1_000_000,
        ge=0,
        le=10**12,
        title="Exploration annealed over",
        group="exploration",
        unit="updates",
        description="Updates of θ⁺ in which the share of random actions falls from 1 to that above.",
    )
    replay: Literal["bundled", "local", "global"] = setting(
        "bundled",
        title="Replay",
        group="parallelism",
        description="bundled: each learner has an actor and its replay to itself; local: each actor's replay "
        "lies on its machine and serves any learner; global: shards that hold what all actors do.",
    )
    n_actors: int = setting(
        100,
        ge=1,
        le=MAX_PARTS,
        symbol="N_act",
        title="Actors",
        group="parallelism",
        description="That each play a world of their own.",
    )
    n_learners: int = setting(
        100,
        ge=1,
        le=MAX_PARTS,
        symbol="N_learn",
        title="Learners",
        group="parallelism",
        description="That each compute gradients; as many as actors where they are bundled.",
    )
    n_shards: int = setting(
        31,
        ge=1,
        le=MAX_PARTS,
        symbol="N_param",
        title="Parameter shards",
        group="parallelism",
        description="Among which θ⁺ and the optimizer's memory are split.",
    )
    n_replay_shards: int = setting(
        8,
        ge=1,
        le=MAX_PARTS,
        title="Replay shards",
        group="parallelism",
        description="Among which the global replay is split; of no meaning for the others.",
    )
    parts_per_process: int = setting(
        1,
        ge=1,
        le=MAX_PARTS,
        title="Parts a process",
        group="parallelism",
        description="Actors, learners, bundles or shards that take turns in one process; 1: each its own, as "
        "in the paper.",
    )
    pull_interval: int = setting(
        1,
        ge=1,
        le=10_000,
        title="Pull every",
        live=True,
        group="parallelism",
        unit="agent steps",
        description="Decisions of an actor, or updates of a learner, between two looks for newer parameters.",
    )
    max_gradient_staleness: int = setting(
        500,
        ge=0,
        le=10**9,
        title="Oldest gradient",
        group="optimisation",
        unit="updates",
        description="A shard discards gradients by parameters that are more updates old; the paper prints no "
        "number.",
    )
    outlier_deviations: float = setting(
        4.0,
        ge=0,
        le=1_000,
        title="Outlier bound",
        live=True,
        group="optimisation",
        unit="standard deviations",
        description="A learner discards gradients whose absolute loss is so far above its mean: in the "
        "paper, several; 0: none is discarded.",
    )
    snapshot_interval_s: float = setting(
        5.0,
        ge=0.1,
        le=3_600,
        title="Snapshot every",
        live=True,
        group="parallelism",
        unit="s",
        description="How often each parameter shard is copied to the engine: what a shard that dies loses.",
    )

    @field_validator("n_learners")
    @classmethod
    def _one_each(cls, value: int, info: ValidationInfo) -> int:
        actors = info.data.get("n_actors", value)
        if info.data.get("replay") == "bundled" and value != actors:
            raise ValueError(f"bundled learners are as many as n_actors, {actors}")
        return value


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

GORILA_DQN = Algorithm(
    id="gorila_dqn",
    title="Gorila DQN",
    summary="DQN spread over processes and machines: actors, learners, sharded replay, sharded parameters.",
    paper="Nair et al. 2015, Massively Parallel Methods for Deep Reinforcement Learning",
    config=GorilaConfig,
    observations=("pixels", "vector"),
    action_values=True,
    devices=("cpu",),
    presets=(
        Preset(
            id="two-cpu-cores",
            title="two CPU cores",
            description="For a small machine: two bundles, two shards, the smaller network, a tenth of the "
            "replay (0.7 GB), newer parameters every fourth decision.",
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
        Preset(
            id="quarter-hour",
            title="a quarter of an hour",
            description="What two CPU cores do in that time: two bundles and shards, the smaller network, "
            "learning and exploiting at once.",
            observation="pixels",
            config=_TWO_CPU_CORES
            | {
                "learning_starts_agent_steps": 5_000,
                "target_update_updates": 1_000,
                "exploration_anneal_updates": 12_500,
                "evaluation_interval_agent_steps": 50_000,
            },
            stop={"agent_steps": 200_000},
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
