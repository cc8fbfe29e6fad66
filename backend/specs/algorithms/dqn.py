"""DQN: one actor, one learner, one replay memory, in lock-step (Mnih et al. 2015)."""

from backend.specs.algorithms.base import Algorithm, Preset
from backend.specs.algorithms.common import LUMINANCE_THEN, PAPER_FRAMES
from backend.specs.algorithms.memory import (
    ENV_FORK_SERVER_BYTES,
    LEARNING_BYTES,
    NETWORK_BYTES,
    RunFacts,
)
from backend.specs.algorithms.replayed import (
    CHECKPOINTED_REPLAY_BYTES,
    REPLAYED_PANELS,
    REPLAYED_SOURCES,
    ReplayedQConfig,
)
from backend.specs.constants import MNIH_2015, Source, ours
from backend.specs.fields import setting


class DqnConfig(ReplayedQConfig):
    """Settings of DQN."""

    exploration_anneal_agent_steps: int = setting(
        1_000_000,
        ge=0,
        le=10**12,
        title="Epsilon annealed over",
        group="exploration",
        unit="agent steps",
        description="Agent steps over which epsilon falls from 1 to its final value.",
    )
    learner_threads: int = setting(
        2,
        ge=1,
        le=64,
        title="Learner threads",
        group="parallelism",
        description="Threads that each compute the gradient of a part of the minibatch, on a CPU. Their "
        "number changes the rounding, so the same seed gives different series.",
    )

    @property
    def env_processes(self) -> int:
        """The engine's own process steps the one environment."""
        return 1

    def training_bytes(self, run: RunFacts) -> int:
        """Memory of the networks, the replay memory, the environment and a minibatch's s and s'."""
        minibatches = 2 * self.batch_size * run.decision_bytes
        # theta, theta_minus, dtheta, g and m, of which a checkpoint copies four; one copy for evaluation, one
        # of the best so far; each thread's gradient.
        networks = (11 + self.learner_threads) * NETWORK_BYTES[self.network]
        processes = LEARNING_BYTES + run.fork_server_bytes(ENV_FORK_SERVER_BYTES)
        replay = self.replay_bytes(run)
        # A checkpoint that stores the replay memory holds a copy of it until it is written.
        peak = max(replay, 2 * min(replay, CHECKPOINTED_REPLAY_BYTES))
        return processes + networks + run.emulator_bytes + minibatches + peak


DQN = Algorithm(
    id="dqn",
    title="DQN",
    summary="One actor and one learner in lock-step: Q-learning from a replay memory, with a target network.",
    paper="Mnih et al. 2015, Human-level control through deep reinforcement learning",
    config=DqnConfig,
    sources=REPLAYED_SOURCES
    | {
        "exploration_anneal_agent_steps": Source(MNIH_2015),
        "learner_threads": ours("Operation only: affects rounding."),
    },
    observations=("pixels", "vector"),
    reproducibility="bitwise",
    action_values=True,
    panels=REPLAYED_PANELS,
    evaluation_protocol="noop_starts_5min",
    presets=(
        Preset(
            id="quarter-hour",
            title="15 minutes",
            description="About 15 minutes on two CPU cores: the smaller network, early learning and little "
            "exploration.",
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
            measured="Assault, noop_starts_5min, full frame, not standardised, one seed: 144, 163, 237 and "
            "382 at 50,000, 100,000, 150,000 and 200,000 agent steps (9 minutes). Random play 222. Road "
            "Runner, noop_starts_5min, full frame, not standardised, one seed: best 593 at 100,000 agent "
            "steps, last 0 at 200,000; the best parameters, evaluated again, 540. Random play 0.",
        ),
        Preset(
            id="paper",
            title="As in the paper",
            description="The paper's constants, for 10 million agent steps: the larger network and a replay "
            "memory of a million agent steps (7 GB).",
            observation="pixels",
            families=("atari",),
            environment_config=PAPER_FRAMES,
            stop={"agent_steps": 10_000_000},
            measured=f"{LUMINANCE_THEN} Assault, noop_starts_5min, full frame, not standardised, one seed: "
            "30, 63, 183 and 207 at 50,000, 100,000, 150,000 and 169,000 agent steps, with epsilon still at "
            "0.85. Random play 222.",
        ),
        Preset(
            id="two-cpu-cores",
            title="2 CPU cores",
            description="For a small machine: the smaller network, a tenth of the replay memory (0.7 GB), "
            "earlier learning and less exploration; an evaluation every 250,000 agent steps.",
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
            measured="Boxing, noop_starts_5min, full frame, not standardised, one seed: −35.7 at 250,000 "
            "agent steps, not run longer. Random play 0.1.",
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
