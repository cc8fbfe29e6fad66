"""A3C: asynchronous advantage actor-critic (Mnih et al. 2016, Algorithm S2)."""

from typing import Any

from backend.specs.algorithms.asynchronous import PAPER, SMALL_PIXELS, AsynchronousConfig
from backend.specs.algorithms.base import Algorithm, Preset
from backend.specs.algorithms.common import BETA, STANDARDISE
from backend.specs.fields import setting

_SMALL_MACHINE: dict[str, Any] = {
    "n_actors": 4,
    "t_max": 20,
    "optimizer": "shared_adam",
    "learning_rate_schedule": "constant",
    "max_grad_norm": 50.0,
    "value_coefficient": 0.25,
}
_COMPACT_LSTM = _SMALL_MACHINE | {"network": "compact", "recurrent": True}


class A3CConfig(AsynchronousConfig):
    """Settings of A3C."""

    recurrent: bool = setting(
        False,
        title="LSTM",
        group="network",
        shape=True,
        description="256 LSTM cells after the last hidden layer, 128 for continuous actions; their state "
        "lasts as long as the episode.",
    )
    standardise: bool = STANDARDISE
    value_coefficient: float = setting(
        0.5,
        ge=0,
        le=10,
        title="Value loss weight",
        live=True,
        group="optimisation",
        description="Weight of the value loss (R - V)²; Algorithm S2 has 1, an author names 0.5.",
    )
    beta: float = BETA


A3C = Algorithm(
    id="a3c",
    title="A3C",
    summary="Actor-learners that each play one world and update one shared network without locks.",
    paper=PAPER,
    config=A3CConfig,
    observations=("pixels", "vector"),
    actions=("discrete", "continuous"),
    devices=("cpu",),
    presets=(
        Preset(
            id="compact-lstm",
            title="compact LSTM, two CPU cores",
            description="A known recipe for a small machine (ikostrikov/pytorch-a3c): 42×42 pictures, an "
            "LSTM, 20 decisions an update, shared Adam.",
            observation="pixels",
            families=("atari",),
            config=_COMPACT_LSTM | {"learning_rate": 0.0001, "evaluation_interval_agent_steps": 200_000},
            environment_config={"picture_size": "42x42", "crop": True},
            stop={"agent_steps": 5_000_000},
        ),
        Preset(
            id="labyrinth",
            title="a maze, two CPU cores",
            description="The compact LSTM over whole rewards. These are rare and one step forward is worth "
            "little, so that little is paid for an undecided policy too.",
            observation="pixels",
            families=("labyrinth",),
            config=_COMPACT_LSTM
            | {"learning_rate": 0.0003, "beta": 0.001, "evaluation_interval_agent_steps": 500_000},
            stop={"agent_steps": 5_000_000},
        ),
        Preset(
            id="racing",
            title="a race, two CPU cores",
            description="The compact LSTM, which can tell speed and drift from one picture after the other.",
            observation="pixels",
            families=("racing",),
            config=_COMPACT_LSTM | {"learning_rate": 0.0003, "evaluation_interval_agent_steps": 250_000},
            stop={"agent_steps": 2_000_000},
        ),
        Preset(
            id="small-pixels",
            title="a small task, two CPU cores",
            description="Two actor-learners and a small network: minutes.",
            observation="pixels",
            families=("small",),
            config=SMALL_PIXELS | {"learning_rate": 0.001},
            stop={"agent_steps": 100_000},
        ),
        Preset(
            id="mujoco",
            title="MuJoCo, two CPU cores",
            description="An update every 50 decisions, where the paper has one an episode: twenty times as "
            "many; gradients of unclipped rewards are large and left so.",
            observation="vector",
            families=("mujoco",),
            config={
                "t_max": 50,
                "learning_rate": 0.0005,
                "max_grad_norm": 1_000.0,
                "evaluation_interval_agent_steps": 250_000,
            },
            stop={"agent_steps": 3_000_000},
        ),
        Preset(
            id="two-cpu-cores",
            title="nips, two CPU cores",
            description="The paper's feed-forward network, over cropped and standardised pictures and with "
            "the compact LSTM's optimizer, which learn from fewer agent steps. Look whether the crop suits "
            "another game than Pong.",
            observation="pixels",
            families=("atari",),
            config=_SMALL_MACHINE
            | {"learning_rate": 0.0001, "standardise": True, "evaluation_interval_agent_steps": 500_000},
            environment_config={"crop": True},
            stop={"agent_steps": 10_000_000},
        ),
        Preset(
            id="whole-pictures",
            title="as in the paper, two CPU cores",
            description="The paper's feed-forward agent with four actor-learners.",
            observation="pixels",
            config={"n_actors": 4, "evaluation_interval_agent_steps": 500_000},
            stop={"agent_steps": 10_000_000},
        ),
    ),
    vector_defaults={
        "network": "mlp",
        "n_actors": 2,
        "learning_rate": 0.003,
        "rmsprop_eps": 0.001,
        "learning_rate_schedule": "constant",
        "max_grad_norm": 5.0,
        "reward_clip": 0.0,
        "evaluation_interval_agent_steps": 100_000,
    },
    continuous_defaults={
        "n_actors": 4,
        "optimizer": "shared_adam",
        "learning_rate": 0.0003,
        "learning_rate_schedule": "constant",
        "reward_clip": 0.0,
        "beta": 0.0001,
        "t_max": 0,
    },
)
