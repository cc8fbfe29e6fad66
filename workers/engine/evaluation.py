"""Scoring an agent from fresh starts, as the papers do.

`noop_starts`: each episode begins with 1 to 30 no-op frames and lasts at most 108,000 frames; unclipped
returns; the exact preprocessing. `plain`: worlds without no-ops, just as they are. Actor-critic agents
sample from pi (see `workers.engine.policies`).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backend.specs.run import MAX_EVALUATION_ENVIRONMENTS, RunSpec
from workers.engine.envs.vector import VectorWorld
from workers.engine.learner import EpisodeEnd, Policy
from workers.engine.recording import EpisodeRecorder
from workers.engine.seeds import episode_seed

STREAM = 2**31
"""Stream of evaluation seeds, apart from every training environment's."""


@dataclass(frozen=True)
class EvaluationResult:
    """Scores of an evaluation, in the order of the episodes."""

    protocol: str
    returns: list[float]
    lengths_frames: list[int]
    first_episode: EpisodeEnd
    action_names: tuple[str, ...]
    time_s: float

    @property
    def mean_return(self) -> float:
        """Mean over the episodes."""
        return float(np.mean(self.returns))


class EvaluationInterrupted(Exception):
    """Someone wanted the engine back before all episodes were played."""


def evaluate(
    policy: Policy,
    spec: RunSpec,
    *,
    episodes: int,
    seed: int,
    processes: int,
    interrupted: Callable[[], bool] = lambda: False,
) -> EvaluationResult:
    """Play `episodes` whole episodes; episode k starts from the k-th seed whatever else is played.

    Args:
        policy: how the agent acts.
        spec: the run; its world's evaluation protocol is used.
        episodes: at least 1.
        seed: seeds the starts.
        processes: that step the environments.
        interrupted: asked between two decisions.

    Raises:
        EvaluationInterrupted: `interrupted` said so.
        WorldDiedError: an environment's process died.
    """
    began = time.monotonic()
    B = min(episodes, MAX_EVALUATION_ENVIRONMENTS)
    # Environment i plays episodes i, i + B, i + 2 B, …; the seed drawn last is never played.
    drawn = [0] * B

    def next_seed(i: int) -> int:
        k = i + drawn[i] * B
        drawn[i] += 1
        return episode_seed(seed, STREAM, k)

    world = VectorWorld(
        spec, environments=B, processes=processes, slots=1, next_seed=next_seed, evaluation=True
    )
    try:
        world.reset()
        returns = [0.0] * episodes
        lengths = [0] * episodes
        todo = [list(range(i, episodes, B)) for i in range(B)]
        recorder = EpisodeRecorder()
        first: EpisodeEnd | None = None
        shared = world.shared
        while any(todo):
            if interrupted():
                raise EvaluationInterrupted
            acting_B = np.array([bool(todo[i]) for i in range(B)])
            action_N, value_N, policy_NA = policy.act(
                shared.observation_SB[0][acting_B], np.flatnonzero(acting_B)
            )
            action_B = np.zeros_like(shared.action_B)
            action_B[acting_B] = action_N
            finished = world.step(action_B, 0, acting_B)
            if first is None:
                lives = 0 if shared.ended_B[0] else int(shared.lives_B[0])
                recorder.add(action_N[0], float(shared.reward_B[0]), float(value_N[0]), policy_NA[0], lives)
            for episode in finished:
                policy.forget(episode.environment)
                if episode.crashed:
                    if episode.environment == 0 and first is None:
                        recorder = EpisodeRecorder()
                    continue  # its place is taken by the next
                k = todo[episode.environment].pop(0)
                returns[k] = episode.episode_return
                lengths[k] = episode.length_frames
                if k == 0:
                    first = EpisodeEnd(
                        source="",
                        seed=episode.seed,
                        episode_return=episode.episode_return,
                        length_steps=episode.length_steps,
                        length_frames=episode.length_frames,
                        recording=recorder,
                    )
    finally:
        world.close()
    assert first is not None
    return EvaluationResult(
        protocol=spec.world.evaluation_protocol,
        returns=returns,
        lengths_frames=lengths,
        first_episode=first,
        action_names=world.action_names,
        time_s=time.monotonic() - began,
    )


def load_policy(spec: RunSpec, checkpoint: Path, seed: int) -> Policy:
    """The policy of a checkpoint, without the rest of its learner.

    Raises:
        DamagedCheckpointError: the file cannot be read.
        ValueError: it is of another network.
    """
    import torch

    from workers.engine.algorithms import ENGINES
    from workers.engine.checkpoint import load
    from workers.engine.envs import make_world
    from workers.engine.optimizers import FlatParameters

    state = load(checkpoint)
    engine = ENGINES[spec.algorithm]
    world = make_world(spec.environment, spec.environment_config)
    network = engine.network(spec, world)
    world.close()
    flat = FlatParameters(network)
    theta = state["learner"]["theta"]
    if theta.shape != flat.theta.shape:
        raise ValueError("the checkpoint is of another network")
    flat.theta.copy_(theta)
    policy: Policy = engine.policy(spec, network, torch.device("cpu"), seed)
    return policy
