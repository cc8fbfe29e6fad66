"""Scores of a run in training: of the present parameters, and of the best so far at the end."""

import os
from collections.abc import Callable

from backend.specs.events import Evaluation
from backend.specs.run import RunSpec
from workers.engine.checkpoint import Checkpoints
from workers.engine.evaluation import STREAM, EvaluationResult, evaluate, load_policy
from workers.engine.journal import Journal
from workers.engine.learner import Learner, Policy
from workers.engine.replays import Replays
from workers.engine.seeds import episode_seed


class Scoring:
    """Plays evaluations, and tells what they gave."""

    best: tuple[float, str] | None
    """The best mean return so far, and the checkpoint that has its parameters."""

    def __init__(
        self,
        journal: Journal,
        checkpoints: Checkpoints,
        replays: Replays,
        interrupted: Callable[[], bool],
    ) -> None:
        """`interrupted` is asked between decisions whether to give up."""
        self.best = None
        self._journal = journal
        self._checkpoints = checkpoints
        self._replays = replays
        self._interrupted = interrupted

    def score(self, spec: RunSpec, learner: Learner) -> None:
        """Score the present parameters; the checkpoint of this step is to hold them.

        Raises:
            EvaluationInterrupted: nothing is told of it.
        """
        steps, name = self._journal.counters.agent_steps, self._checkpoints.name()
        seed = episode_seed(spec.seed, STREAM, steps) % 2**31
        result = self._play(spec, learner.policy(seed), name, seed)
        metric = f"eval/{result.protocol}/mean_return"
        self._journal.points.add(metric, self._journal.counters, result.mean_return)
        self._replays.keep(spec, result.first_episode, result.action_names, "evaluation")
        if self.best is None or result.mean_return > self.best[0]:
            self.best = (result.mean_return, name)

    def score_best_kept(self, spec: RunSpec, learner: Learner) -> None:
        """Score the best of all evaluated parameters from new starts, as Nair et al. 2015 (section 5.2).

        Raises:
            EvaluationInterrupted: nothing is told of it.
        """
        if not spec.config.scores_best_kept or self.best is None:
            return
        _, name = self.best
        seed = episode_seed(spec.seed, STREAM + 1, self._journal.counters.agent_steps) % 2**31
        path = self._checkpoints.path(name)
        if name == self._checkpoints.name():
            policy = learner.policy(seed)
        elif path.exists():
            policy = load_policy(spec, path, seed)
        else:
            self._journal.note(
                f"the best-kept parameters, {name}, are not on this host and not scored", "warning"
            )
            return
        result = self._play(spec, policy, name, seed)
        metric = f"eval/{result.protocol}/best_kept_return"
        self._journal.points.add(metric, self._journal.counters, result.mean_return)

    def _play(self, spec: RunSpec, policy: Policy, name: str, seed: int) -> EvaluationResult:
        """Play with the parameters that the checkpoint `name` has, or will have."""
        journal, counters, episodes = self._journal, self._journal.counters, spec.config.evaluation_episodes
        result = evaluate(
            policy,
            spec,
            episodes=episodes,
            seed=seed,
            processes=_processes(spec),
            interrupted=self._interrupted,
        )
        journal.log_points()
        journal.say(
            Evaluation(
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
        journal.note(
            f"scored {result.mean_return:.2f} over {episodes} {result.protocol} episodes "
            f"with {name} in {result.time_s:.0f} s"
        )
        return result


def _processes(spec: RunSpec) -> int:
    """That step the environments of an evaluation: as many as train, at most one a core."""
    config = spec.config.model_dump()
    return min(int(config.get("n_w", config.get("n_actors", 1))), len(os.sched_getaffinity(0)))
