"""Scoring an agent from fresh starts under a protocol (see `backend.specs.protocols`), as the papers do.

Returns are unclipped. Agents act as in the papers (see `workers.engine.nn.policies`), or greedily where the
protocol specifies it. Jobs and the command line evaluate agents with this module, too; `scoring` evaluates
during training.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.specs.algorithms.memory import MAX_EVALUATION_ENVIRONMENTS
from backend.specs.protocols import starts_protocol
from backend.specs.run import RunSpec
from workers.engine.envs import env_config
from workers.engine.envs.vector import VectorEnv
from workers.engine.methods.base import EpisodeEnd, Policy
from workers.engine.methods.recording import EpisodeRecorder
from workers.engine.nn.seeds import episode_seed

STREAM = 2**31
"""Seed stream of evaluations, distinct from every training environment's."""


@dataclass(frozen=True)
class EvaluationResult:
    """Returns and lengths of an evaluation, in the order of its episodes."""

    protocol: str
    returns: list[float]
    lengths_frames: list[int]
    seeds: list[int]
    """Seed of each episode; with a start set, the number of its start."""
    first_episode: EpisodeEnd
    action_names: tuple[str, ...]
    time_s: float
    cut_agent_steps: int
    """Agent steps after which an episode was cut."""
    n_cut: int
    """Number of episodes that had not ended by then; their returns count as they were."""

    @property
    def cut_note(self) -> str:
        """Says that episodes were cut, to follow the score; empty if none was."""
        if not self.n_cut:
            return ""
        verb = "was" if self.n_cut == 1 else "were"
        return (
            f"; {self.n_cut} of them did not end and {verb} cut after {self.cut_agent_steps:,} agent steps: "
            "set max_episode_agent_steps"
        )

    @property
    def mean_return(self) -> float:
        """Mean over the episodes."""
        return float(np.mean(self.returns))


class EvaluationInterrupted(Exception):
    """The evaluation was interrupted before all episodes were played."""


def evaluate(
    policy: Policy,
    spec: RunSpec,
    *,
    episodes: int,
    seed: int,
    processes: int,
    protocol: str | None = None,
    starts: Path | None = None,
    interrupted: Callable[[], bool] = lambda: False,
) -> EvaluationResult:
    """Play `episodes` complete episodes.

    An episode that has not ended after `evaluation_cut_agent_steps` of the environment is cut, and counts.
    Without crashes, episode k starts from the k-th seed; after a crash, the later episodes of that
    environment each take the next seed.

    Args:
        policy: chooses the actions.
        spec: the run.
        episodes: number of episodes, at least 1.
        seed: seeds the starts.
        processes: number of processes that step the environments.
        protocol: id; the run's by default.
        starts: file of the protocol's start set: episode k starts from its k-th point, modulo their
            number; after a crash as for seeds.
        interrupted: called between decisions; True interrupts.

    Raises:
        EvaluationInterrupted: `interrupted` returned True.
        ChildError: a process of the environments failed, as after too many crashes in a row, or has exited.
        EnvCrashedError: with `processes` 0, too many crashes in a row.
        UnsupportedProtocolError: the environment does not have the protocol.
        ValueError: the starts are missing, or the protocol takes none.
    """
    protocol = protocol or spec.evaluation_protocol
    if (starts_protocol(protocol) is None) != (starts is None):
        raise ValueError(f"{protocol}: a protocol with a start set needs its file, and no other takes one")
    if spec.catalogue_environment.protocol(protocol).greedy:
        policy = GreedyPolicy(policy)
    started = time.monotonic()
    B = min(episodes, MAX_EVALUATION_ENVIRONMENTS)
    # Environment i plays episodes i, i + B, i + 2 B, …; it draws one seed ahead, and begins one more episode
    # than it finishes.
    drawn = [0] * B

    def next_seed(i: int) -> int:
        k = i + drawn[i] * B
        drawn[i] += 1
        return k if starts is not None else episode_seed(seed, STREAM, k)

    cut_agent_steps = env_config(spec, protocol).evaluation_cut_agent_steps
    n_cut = 0
    env = VectorEnv(
        spec,
        environments=B,
        processes=processes,
        slots=1,
        next_seed=next_seed,
        protocol=protocol,
        starts=starts,
    )
    try:
        env.reset()
        returns = [0.0] * episodes
        lengths = [0] * episodes
        seeds = [0] * episodes
        todo = [list(range(i, episodes, B)) for i in range(B)]
        recorder = EpisodeRecorder()
        first: EpisodeEnd | None = None
        shared = env.shared
        while any(todo):
            if interrupted():
                raise EvaluationInterrupted
            acting_B = np.array([bool(todo[i]) for i in range(B)])
            action_N, value_N, policy_NA = policy.act(
                shared.observation_SB[0][acting_B], np.flatnonzero(acting_B)
            )
            action_B = np.zeros_like(shared.action_B)
            action_B[acting_B] = action_N
            finished = env.step(action_B, 0, acting_B)
            if first is None:
                lives = 0 if shared.episode_over_B[0] else int(shared.lives_B[0])
                recorder.add(action_N[0], float(shared.reward_B[0]), float(value_N[0]), policy_NA[0], lives)
                recorder.truncated = bool(shared.truncated_B[0])
            is_cut_B = acting_B & ~shared.episode_over_B & (shared.episode_length_B >= cut_agent_steps)
            if is_cut_B.any():
                n_cut += int(is_cut_B.sum())
                recorder.truncated |= bool(is_cut_B[0])
                finished += env.cut(np.flatnonzero(is_cut_B).tolist())
            for episode in finished:
                policy.forget(episode.environment)
                if episode.crashed:
                    if episode.environment == 0 and first is None:
                        recorder = EpisodeRecorder()
                    continue  # the next episode takes its place
                k = todo[episode.environment].pop(0)
                returns[k] = episode.episode_return
                lengths[k] = episode.length_frames
                seeds[k] = episode.seed
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
        env.close()
    assert first is not None
    return EvaluationResult(
        protocol=protocol,
        returns=returns,
        lengths_frames=lengths,
        seeds=seeds,
        first_episode=first,
        action_names=env.action_names,
        time_s=time.monotonic() - started,
        cut_agent_steps=cut_agent_steps,
        n_cut=n_cut,
    )


class GreedyPolicy:
    """Another policy's best action: the most probable one, that of the highest Q, or the mean of a Gaussian;
    of several that are best the one that it has chosen."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def act(
        self, observation_N: NDArray[Any], environment_N: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Best actions (N,) or (N, D), V or max Q (N,), and pi or Q (N, A) or mu (N, D)."""
        action_N, value_N, policy_NA = self._policy.act(observation_N, environment_N)
        if action_N.ndim > 1:
            return policy_NA, value_N, policy_NA
        is_best_N = policy_NA[np.arange(len(action_N)), action_N] == policy_NA.max(-1)
        return np.where(is_best_N, action_N, policy_NA.argmax(-1)), value_N, policy_NA

    def forget(self, environment: int) -> None:
        """As the other policy."""
        self._policy.forget(environment)


def load_policy(spec: RunSpec, checkpoint: Path, seed: int) -> Policy:
    """The policy of a checkpoint, without the rest of its learner; raises as `load_policies`."""
    return load_policies(spec, checkpoint, [seed])[0]


def load_policies(spec: RunSpec, checkpoint: Path, seeds: Sequence[int]) -> list[Policy]:
    """Policies of a checkpoint that share its network, each with random numbers and a memory of its own.

    Raises:
        DamagedCheckpointError: the file cannot be read.
        ValueError: it belongs to another network.
    """
    return policies_of(spec, load_network(spec, checkpoint), seeds)


def policies_of(spec: RunSpec, network: Any, seeds: Sequence[int]) -> list[Policy]:
    """Policies that share a network of the run, as for `load_policies`."""
    import torch

    from workers.engine.methods.registry import METHODS

    return [METHODS[spec.algorithm].policy(network, torch.device("cpu"), seed) for seed in seeds]


def network_of(spec: RunSpec) -> Any:
    """The network of a run's agent, untrained."""
    from workers.engine.envs import make_env
    from workers.engine.methods.registry import METHODS

    env = make_env(spec.environment, spec.environment_config)
    try:
        return METHODS[spec.algorithm].network(spec.config, env)
    finally:
        env.close()


def load_network(spec: RunSpec, checkpoint: Path) -> Any:
    """The network of a checkpoint; raises as `load_policies`."""
    from workers.engine.nn.optimizers import FlatParameters
    from workers.engine.training.checkpoint import load

    state = load(checkpoint)
    network = network_of(spec)
    flat = FlatParameters(network)
    theta = state["learner"]["theta"]
    if theta.shape != flat.theta.shape:
        raise ValueError(
            f"{checkpoint.name} belongs to another network: it has {theta.numel()} parameters, "
            f"the run's network {flat.theta.numel()}"
        )
    flat.theta.copy_(theta)
    return network
