"""A random agent: uniformly random actions, the reference of learned scores (Mnih et al. 2015)."""

from backend.specs.algorithms.base import OPERATION_SOURCES, Algorithm, AlgorithmConfig, Preset
from backend.specs.algorithms.memory import ENV_FORK_SERVER_BYTES, MIB, RunFacts
from backend.specs.constants import MNIH_2015, Source

FRAMES_AT_10_HZ = 6
"""Emulator frames for which an action is held at 10 Hz: Atari's emulator computes 60 frames a second."""
_EVALUATED_ONLY = {"agent_steps": 1}
"""The limit of a run that is only evaluated: one decision."""


class RandomConfig(AlgorithmConfig):
    """Settings of the random agent: those of every algorithm."""

    @property
    def env_processes(self) -> int:
        """The engine's own process steps the one environment."""
        return 1

    def training_bytes(self, run: RunFacts) -> int:
        """Memory of the environment, and of the server that the evaluation's processes are forked from."""
        return run.fork_server_bytes(ENV_FORK_SERVER_BYTES) + run.emulator_bytes + 8 * MIB


RANDOM = Algorithm(
    id="random",
    title="Random agent",
    summary="Takes uniformly random actions and learns nothing: the reference of learned scores.",
    paper="Mnih et al. 2015, Human-level control through deep reinforcement learning, methods",
    config=RandomConfig,
    sources={name: OPERATION_SOURCES[name] for name in RandomConfig.model_fields if name in OPERATION_SOURCES}
    | {"evaluation_episodes": Source(MNIH_2015)},
    observations=("pixels", "vector"),
    actions=("discrete", "continuous"),
    devices=("cpu",),
    learns=False,
    reproducibility="bitwise",
    evaluation_protocol="noop_starts_5min",
    presets=(
        Preset(
            id="10-hz",
            title="10 Hz, evaluated only",
            description="A new action every sixth emulator frame, held in between: the random agent of the "
            "published scores (Mnih et al. 2015). One decision, then the evaluation.",
            observation="pixels",
            families=("atari",),
            environment_config={"frame_skip": FRAMES_AT_10_HZ},
            stop=_EVALUATED_ONLY,
            measured="Boxing, noop_starts_5min, full frame, not standardised, three seeds of 30 games: 0.1 "
            "(published 0.1). Breakout 1.3 (1.7), Pong −20.3 (−20.7), Seaquest 66 (68), Space "
            "Invaders 155 (148).",
        ),
        Preset(
            id="each-decision",
            title="Each decision, evaluated only",
            description="A new action whenever a trained agent would choose one, in Atari games every fourth "
            "emulator frame. One decision, then the evaluation.",
            observation="pixels",
            stop=_EVALUATED_ONLY,
        ),
        Preset(
            id="each-decision-vectors",
            title="Each decision, evaluated only",
            description="A new action whenever a trained agent would choose one. One decision, then the "
            "evaluation.",
            observation="vector",
            stop=_EVALUATED_ONLY,
        ),
    ),
)
