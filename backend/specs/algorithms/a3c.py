"""A3C: asynchronous advantage actor-critic (Mnih et al. 2016, Algorithm S2)."""

from typing import Any

from backend.specs.algorithms.asynchronous import (
    ASYNCHRONOUS_SOURCES,
    PAPER,
    SMALL_PIXELS,
    AsynchronousConfig,
)
from backend.specs.algorithms.base import Algorithm, Preset
from backend.specs.algorithms.common import (
    BETA,
    CROPPED_GAMES,
    FIRST_LAYER_STRIDE,
    PAPER_FRAMES,
    STANDARDISE,
    VALUE_COEFFICIENT,
    scaling_conflicts,
)
from backend.specs.algorithms.memory import RunFacts, large_decision_bytes, network_bytes
from backend.specs.constants import S8, S9, Source, Sources, ours
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
_PAPER: dict[str, Any] = {"value_coefficient": 1.0}
"""What the paper's agent has besides the defaults."""
_FOUR_ACTORS: dict[str, Any] = {"n_actors": 4, "evaluation_interval_agent_steps": 500_000}
_CONTINUOUS_AS_IN_THE_PAPER: dict[str, Any] = {
    "recurrent": True,
    "n_actors": 16,
    "optimizer": "shared_rmsprop",
    "learning_rate": 0.0007,
    "learning_rate_schedule": "linear",
    "rmsprop_eps": 0.1,
    "max_grad_norm": 40.0,
    "reward_clip": 0.0,
    "beta": 0.0001,
    "t_max": 0,
}
"""The supplement's, sections 8 and 9; see docs/constants.md."""
_FEED_FORWARD: dict[str, Any] = {
    "recurrent": False,
    "n_actors": 4,
    "optimizer": "shared_adam",
    "learning_rate": 0.0003,
    "learning_rate_schedule": "constant",
}
"""For continuous actions on a small machine."""


SMALL_TENSOR_DECISION_BYTES = 16 * 2**10
"""A decision with vector observations: activations of the policy and of the value, in small tensors."""
LSTM_DECISION_BYTES = 78 * 2**10
"""What an LSTM adds to a decision. With it, the estimate for the defaults on HalfCheetah, 16 actors of one
update per episode, exceeds the largest measured peak, 2,895 MiB. How many update at the same time differs: an
equal run peaked at 1,853 MiB."""

_SOURCES = ASYNCHRONOUS_SOURCES | {
    "recurrent": Source("Mnih 2016, 5.1", note="The paper trains both agents, with and without."),
    "first_layer_stride": Source("Babaeizadeh 2017, 5.1, note 2"),
    "standardise": ours("Not in the paper."),
    "value_coefficient": Source(
        "Mnih 2016, algorithm S2", 1.0, "An author mentions 0.5; the algorithm has no weight."
    ),
    "beta": Source(S8),
}
_CONTINUOUS_SOURCES: Sources = {
    "recurrent": Source(S9),
    "n_actors": Source(S8),
    "optimizer": Source(S8),
    "learning_rate": ours("As for discrete actions; the paper samples it.", S8),
    "learning_rate_schedule": Source(S8),
    "rmsprop_eps": ours("As for discrete actions; not stated.", "Mnih 2016, eq. 1"),
    "max_grad_norm": ours("As for discrete actions; not stated.", "Mnih 2016, 5.1"),
    "reward_clip": ours("Off: the clip is for Atari's scores.", S9),
    "beta": Source(S9),
    "t_max": Source(S9),
}
"""Sources of the defaults for continuous actions."""


class A3CConfig(AsynchronousConfig):
    """Settings of A3C."""

    recurrent: bool = setting(
        False,
        title="LSTM",
        group="network",
        shape=True,
        description="Adds an LSTM after the last hidden layer: 256 cells, or 128 for continuous actions. "
        "Its state is reset at the start of each episode.",
    )
    first_layer_stride: int = FIRST_LAYER_STRIDE
    standardise: bool = STANDARDISE
    value_coefficient: float = VALUE_COEFFICIENT(
        0.5,
        description="Weight of the value loss (R - V)². Algorithm S2 uses 1; an author mentions 0.5.",
    )
    beta: float = BETA

    @property
    def network_bytes(self) -> int:
        """One copy of the parameters, which depend on the stride in the network large."""
        return network_bytes(self.network, self.first_layer_stride)

    def decision_bytes(self, run: RunFacts) -> int:
        """Memory of a decision; a decision with vector observations is in small tensors."""
        inputs = run.decision_bytes if run.observation == "pixels" else SMALL_TENSOR_DECISION_BYTES
        inputs += large_decision_bytes(self.first_layer_stride) if self.network == "large" else 0
        return inputs + (LSTM_DECISION_BYTES if self.recurrent else 0)

    def conflicts(self, run: RunFacts) -> dict[str, str]:
        """Errors of the asynchronous methods' settings and of the scaling of observations."""
        scaling = scaling_conflicts(standardise=self.standardise, centre=self.centre)
        return super().conflicts(run) | scaling


_PRESETS = (
    Preset(
        id="compact-lstm-full-frame",
        title="Compact LSTM, full frame, 2 CPU cores",
        description="For a small machine: the whole frame as 42×42 observations, an LSTM, 20 agent steps per "
        "update, shared Adam (the recipe of ikostrikov/pytorch-a3c, without its crop).",
        observation="pixels",
        families=("atari",),
        config=_COMPACT_LSTM | {"learning_rate": 0.0001, "evaluation_interval_agent_steps": 200_000},
        environment_config={"observation_size": "42x42"},
        stop={"agent_steps": 5_000_000},
        measured="Pong, noop_starts, full frame, standardised, one seed: −0.4 at 1.2 million agent steps; "
        "random play −20.7.",
    ),
    Preset(
        id="labyrinth",
        title="Labyrinth, 2 CPU cores",
        description="The compact LSTM with unclipped rewards. Rewards are sparse and small, so the "
        "entropy bonus is small too.",
        observation="pixels",
        families=("labyrinth",),
        config=_COMPACT_LSTM
        | {"learning_rate": 0.0003, "beta": 0.001, "evaluation_interval_agent_steps": 500_000},
        stop={"agent_steps": 5_000_000},
        measured="Labyrinth-Small, plain, standardised, one seed: 61 at 0.5 million agent steps "
        "(10 minutes); random play "
        "3.8.",
    ),
    Preset(
        id="racing",
        title="Racing, 2 CPU cores",
        description="The compact LSTM, which can infer speed and drift from successive observations.",
        observation="pixels",
        families=("racing",),
        config=_COMPACT_LSTM | {"learning_rate": 0.0003, "evaluation_interval_agent_steps": 250_000},
        stop={"agent_steps": 2_000_000},
        measured="Racing-Slow, plain, standardised, one seed: 153 at 0.25 million agent steps (23 minutes "
        "under heavy "
        "load); random play 3.1.",
    ),
    Preset(
        id="small-pixels",
        title="Small environment, 2 CPU cores",
        description="Two actor-learners and a small network; trains in minutes.",
        observation="pixels",
        families=("small",),
        config=SMALL_PIXELS | {"learning_rate": 0.001},
        stop={"agent_steps": 100_000},
    ),
    Preset(
        id="mujoco",
        title="MuJoCo, 2 CPU cores",
        description="A feed-forward agent, shared Adam, and one update every 50 agent steps, where the paper "
        "has one per episode: twenty times as many updates. Rewards are not clipped, so gradients are large "
        "and the norm clip is high.",
        observation="vector",
        families=("mujoco",),
        config=_FEED_FORWARD
        | {
            "t_max": 50,
            "learning_rate": 0.0005,
            "max_grad_norm": 1_000.0,
            "evaluation_interval_agent_steps": 250_000,
        },
        stop={"agent_steps": 3_000_000},
        measured="HalfCheetah, plain, seed 0: 495 at 0.25 million agent steps (12 minutes under heavy load); "
        "not stable: seed 1 had 288 at 0.1 and −370 at 0.27 million. Random play −273.",
    ),
    Preset(
        id="feed-forward",
        title="Feed-forward, 2 CPU cores",
        description="For a small machine: four actor-learners without an LSTM, shared Adam at a constant "
        "rate. As in the paper, each episode is one update.",
        observation="vector",
        actions=("continuous",),
        config=_FEED_FORWARD | {"max_grad_norm": 5.0},
        stop={"agent_steps": 1_000_000},
        measured="Hopper, plain, one seed: 194 at 0.1 million agent steps (68 s), 189 at 0.3 million; random "
        "play 20.",
    ),
    Preset(
        id="feed-forward-pixels",
        title="Feed-forward, 2 CPU cores",
        description="For a small machine: four actor-learners without an LSTM, shared Adam at a constant "
        "rate. As in the paper, each episode is one update.",
        observation="pixels",
        actions=("continuous",),
        config=_FEED_FORWARD,
        stop={"agent_steps": 1_000_000},
    ),
    Preset(
        id="paper",
        title="As in the paper",
        description="The paper's constants, for 10 million agent steps: a feed-forward agent, 16 "
        "actor-learners. The paper trained for four days on 16 cores.",
        observation="pixels",
        families=("atari",),
        config=_PAPER,
        environment_config=PAPER_FRAMES,
        stop={"agent_steps": 10_000_000},
        measured="Measured with the value loss weighted 0.5 and frames combined after greyscale, not run to "
        "its end. Pong, noop_starts, full frame, not standardised, one seed: −20.1 at 0.5 million agent "
        "steps, −20.2 at 0.96 million (10 minutes).",
    ),
    Preset(
        id="paper-lstm",
        title="As in the paper, LSTM",
        description="The paper's recurrent agent: 256 LSTM cells after the last hidden layer, 16 "
        "actor-learners, for 10 million agent steps. The paper trained for four days on 16 cores.",
        observation="pixels",
        families=("atari",),
        config=_PAPER | {"recurrent": True},
        environment_config=PAPER_FRAMES,
        stop={"agent_steps": 10_000_000},
    ),
    Preset(
        id="paper-57-games",
        title="As in the paper, 57 games",
        description="The feed-forward agent of the paper's table of 57 games, with the larger network of "
        "Mnih et al. 2015, as section 5.1 states, for 10 million agent steps.",
        observation="pixels",
        families=("atari",),
        config=_PAPER | {"network": "nature"},
        environment_config=PAPER_FRAMES,
        stop={"agent_steps": 10_000_000},
    ),
    Preset(
        id="full-frame",
        title="As in the paper, 4 actors",
        description="The paper's feed-forward agent with four actor-learners instead of sixteen, for 10 "
        "million agent steps. The paper trained for four days on 16 cores.",
        observation="pixels",
        families=("atari",),
        config=_PAPER | _FOUR_ACTORS,
        environment_config=PAPER_FRAMES,
        stop={"agent_steps": 10_000_000},
    ),
    Preset(
        id="paper-labyrinth",
        title="As in the paper",
        description="The paper's recurrent agent of section 5.4, with 16 actor-learners, for 10 million "
        "agent steps. Rewards are not clipped: else an apple would count as much as the portal.",
        observation="pixels",
        families=("labyrinth",),
        config=_PAPER | {"recurrent": True},
        stop={"agent_steps": 10_000_000},
    ),
    Preset(
        id="labyrinth-4-actors",
        title="As in the paper, 4 actors",
        description="The paper's recurrent agent of section 5.4 with four actor-learners instead of "
        "sixteen, for 10 million agent steps.",
        observation="pixels",
        families=("labyrinth",),
        config=_PAPER | {"recurrent": True} | _FOUR_ACTORS,
        stop={"agent_steps": 10_000_000},
    ),
    Preset(
        id="paper-racing",
        title="As in the paper",
        description="The paper's feed-forward agent of section 5.2, with 16 actor-learners, for 10 million "
        "agent steps. The paper trained for about 12 hours.",
        observation="pixels",
        actions=("discrete",),
        families=("racing",),
        config=_PAPER,
        stop={"agent_steps": 10_000_000},
    ),
    Preset(
        id="four-actors",
        title="The paper's feed-forward agent, 4 actors",
        description="The paper's feed-forward agent with four actor-learners instead of sixteen, for 10 "
        "million agent steps.",
        observation="pixels",
        actions=("discrete",),
        families=("racing", "labyrinth", "small", "envpool", "custom"),
        config=_PAPER | _FOUR_ACTORS,
        stop={"agent_steps": 10_000_000},
    ),
    Preset(
        id="full-frame-centred",
        title="Full frame, centred, 4 actors",
        description="The paper's feed-forward agent with four actor-learners, a learning rate of 0.0016, and "
        "observations centred by the mean image of random play, in which what moves is as large as it can "
        "be.",
        observation="pixels",
        actions=("discrete",),
        families=("atari",),
        config=_FOUR_ACTORS
        | {"centre": True, "learning_rate": 0.0016, "evaluation_interval_agent_steps": 250_000},
        stop={"agent_steps": 10_000_000},
    ),
    Preset(
        id="compact-lstm-cropped",
        title="Compact LSTM, cropped frame, 2 CPU cores",
        description="For Pong: the compact LSTM that sees the playing field only, without score and walls "
        "(ikostrikov/pytorch-a3c).",
        observation="pixels",
        families=("atari",),
        environments=CROPPED_GAMES,
        config=_COMPACT_LSTM | {"learning_rate": 0.0001, "evaluation_interval_agent_steps": 200_000},
        environment_config={"observation_size": "42x42", "crop": True},
        stop={"agent_steps": 5_000_000},
        measured="Pong, noop_starts, cropped frame, standardised, three seeds: 18.4, 18.3 and 18.3 at 0.6, "
        "0.8 and 0.8 million agent steps (219, 362 and 298 s).",
    ),
    Preset(
        id="nips-cropped",
        title="NIPS network, cropped frame, 2 CPU cores",
        description="For Pong: the paper's feed-forward network with cropped, normalised observations and "
        "the optimizer of the compact LSTM.",
        observation="pixels",
        families=("atari",),
        environments=CROPPED_GAMES,
        config=_SMALL_MACHINE
        | {"learning_rate": 0.0001, "standardise": True, "evaluation_interval_agent_steps": 500_000},
        environment_config={"crop": True},
        stop={"agent_steps": 10_000_000},
        measured="Pong, noop_starts, cropped frame, standardised, three seeds: 18.2 and 5.3 at 0.8 million "
        "agent steps, bounded there; 17.2 at 1 million, bounded there.",
    ),
)


A3C = Algorithm(
    id="a3c",
    title="A3C",
    summary="Actor-learners that each step one environment and update one shared network without locks.",
    paper=PAPER,
    config=A3CConfig,
    sources=_SOURCES,
    observations=("pixels", "vector"),
    reproducibility="none",
    actions=("discrete", "continuous"),
    devices=("cpu",),
    presets=_PRESETS,
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
    continuous_defaults=_CONTINUOUS_AS_IN_THE_PAPER,
    continuous_sources=_CONTINUOUS_SOURCES,
)
