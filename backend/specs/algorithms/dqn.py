"""DQN: one actor, one learner, one replay memory, in lock-step (Mnih et al. 2015)."""

from backend.specs.algorithms.base import Algorithm, Preset
from backend.specs.algorithms.replayed import ReplayedQConfig
from backend.specs.fields import setting


class DqnConfig(ReplayedQConfig):
    """Settings of DQN."""

    exploration_anneal_agent_steps: int = setting(
        1_000_000,
        ge=0,
        le=10**12,
        title="Exploration annealed over",
        group="exploration",
        unit="agent steps",
        description="Decisions in which the share of random actions falls from 1 to that above.",
    )
    learner_threads: int = setting(
        2,
        ge=1,
        le=64,
        title="Threads of the learner",
        group="parallelism",
        description="That each compute the gradient of their part of a minibatch, on a CPU. The series of a "
        "seed depends on how many they are, by rounding.",
    )


DQN = Algorithm(
    id="dqn",
    title="DQN",
    summary="One actor and one learner in lock-step: Q-learning from replayed experience, with a target "
    "network.",
    paper="Mnih et al. 2015, Human-level control through deep reinforcement learning",
    config=DqnConfig,
    observations=("pixels", "vector"),
    action_values=True,
    presets=(
        Preset(
            id="two-cpu-cores",
            title="two CPU cores",
            description="For a small machine: the smaller network, a tenth of the replay (0.7 GB), learning "
            "and exploiting sooner; an evaluation every quarter million.",
            observation="pixels",
            config={
                "network": "nips",
                "replay_capacity": 100_000,
                "learning_starts_agent_steps": 10_000,
                "target_update_updates": 2_500,
                "exploration_anneal_agent_steps": 250_000,
                "exploration_eps": 0.05,
                "evaluation_interval_agent_steps": 250_000,
            },
            stop={"agent_steps": 2_000_000},
        ),
        Preset(
            id="quarter-hour",
            title="a quarter of an hour",
            description="What two CPU cores do in that time: the smaller network, learning and exploiting at "
            "once; enough to leave random play behind in a game that pays often.",
            observation="pixels",
            config={
                "network": "nips",
                "replay_capacity": 100_000,
                "learning_starts_agent_steps": 5_000,
                "target_update_updates": 1_000,
                "exploration_anneal_agent_steps": 50_000,
                "exploration_eps": 0.05,
                "evaluation_interval_agent_steps": 50_000,
            },
            stop={"agent_steps": 200_000},
        ),
    ),
    vector_defaults={
        "network": "mlp",
        "learning_rate": 0.001,
        "reward_clip": 0.0,
        "target_update_updates": 250,
        "replay_capacity": 50_000,
        "learning_starts_agent_steps": 1_000,
        "exploration_anneal_agent_steps": 10_000,
        "exploration_eps": 0.05,
        "learner_threads": 1,
        "evaluation_interval_agent_steps": 100_000,
    },
)
