"""Evaluations during training: of the current parameters, and at the end of the best ones.

Apart from `evaluation`, which plays and scores episodes also where nothing trains: this module runs
the evaluations of training and emits their results.
"""

import os
from collections.abc import Callable
from pathlib import Path

from backend.specs import machine_faults
from backend.specs.events import EvaluationEvent
from backend.specs.run import RunSpec
from workers.engine.methods.base import Learner, Policy
from workers.engine.nn.seeds import episode_seed
from workers.engine.training.checkpoint import Checkpoints, DamagedCheckpointError
from workers.engine.training.evaluation import STREAM, EvaluationResult, evaluate, load_policy
from workers.engine.training.journal import Journal
from workers.engine.training.replays import Replays


class Scoring:
    """Runs evaluations and emits their results."""

    best: tuple[float, str] | None
    """Best mean return so far, and the checkpoint with its parameters."""

    def __init__(
        self,
        journal: Journal,
        checkpoints: Checkpoints,
        replays: Replays,
        starts: Path | None,
        interrupted: Callable[[], bool],
    ) -> None:
        """`starts` is the file of the start set of the run's protocol; None without a set. `interrupted` is
        called between decisions; True interrupts an evaluation."""
        self.best = None
        self._journal = journal
        self._checkpoints = checkpoints
        self._replays = replays
        self._starts = starts
        self._interrupted = interrupted

    def score(self, spec: RunSpec, learner: Learner) -> None:
        """Score the current parameters; the caller then saves them in the checkpoint of this step.

        Raises:
            EvaluationInterrupted: nothing was emitted.
        """
        steps, name = self._journal.counters.agent_steps, self._checkpoints.name()
        seed = episode_seed(spec.seed, STREAM, steps) % 2**31
        result = self._play(spec, learner.policy(seed), name, seed)
        metric = f"eval/{result.protocol}/mean_return"
        self._journal.add_point(metric, result.mean_return)
        self._replays.save(spec, result.first_episode, result.action_names, result.protocol)
        if self.best is None or result.mean_return > self.best[0]:
            self.best = (result.mean_return, name)

    def score_best(self, spec: RunSpec, learner: Learner) -> None:
        """Score the best evaluated parameters again from new starts, as Nair et al. 2015 (section 5.2).

        Raises:
            EvaluationInterrupted: nothing was emitted.
        """
        if not spec.config.scores_best_kept or self.best is None:
            return
        _, name = self.best
        seed = episode_seed(spec.seed, STREAM + 1, self._journal.counters.agent_steps) % 2**31
        path = self._checkpoints.path(name)
        if name == self._checkpoints.name():
            policy = learner.policy(seed)
        elif path.exists():
            try:
                policy = load_policy(spec, path, seed)
            except DamagedCheckpointError as error:
                if machine_faults.errno_of(error) is not None:
                    raise
                self._journal.log(f"the best checkpoint {name} is damaged and was not scored", "warning")
                return
        else:
            self._journal.log(f"the best checkpoint {name} is not on this host and was not scored", "warning")
            return
        result = self._play(spec, policy, name, seed, note=" again (the best checkpoint)")
        metric = f"eval/{result.protocol}/best_kept_return"
        self._journal.add_point(metric, result.mean_return)

    def _play(
        self, spec: RunSpec, policy: Policy, name: str, seed: int, *, note: str = ""
    ) -> EvaluationResult:
        """Evaluate with the parameters of the checkpoint `name`; `note` follows it in the log line."""
        journal, counters, episodes = self._journal, self._journal.counters, spec.config.evaluation_episodes
        result = evaluate(
            policy,
            spec,
            episodes=episodes,
            seed=seed,
            processes=_processes(spec),
            starts=self._starts,
            interrupted=self._interrupted,
        )
        journal.emit_points()
        journal.emit(
            EvaluationEvent(
                protocol=result.protocol,
                agent_steps=counters.agent_steps,
                frames=counters.frames,
                wall_time_s=counters.wall_time_s,
                checkpoint=name,
                seed=seed,
                returns=result.returns,
                lengths_frames=result.lengths_frames,
                mean_return=result.mean_return,
            )
        )
        journal.log(
            f"evaluated {name}{note}: mean return {result.mean_return:.2f} "
            f"over {episodes} {result.protocol} episodes in {result.time_s:.0f} s{result.cut_note}",
            "warning" if result.n_cut else "info",
        )
        return result


def _processes(spec: RunSpec) -> int:
    """Number of processes that step an evaluation's environments: that of training, at most one per core."""
    return min(spec.config.env_processes, len(os.sched_getaffinity(0)))
