"""The life of one engine: build, resume, train, report, save, evaluate, end. Knows no algorithm."""

import os
import platform
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from backend.specs.events import AnyEvent, Ended, Report, SettingsChanged, Started
from backend.specs.run import InvalidSpec, RunSpec, changed_live
from workers.engine.algorithms import ENGINES
from workers.engine.checkpoint import Checkpoints
from workers.engine.control import Control
from workers.engine.envs.vector import WorldDiedError
from workers.engine.evaluation import EvaluationInterrupted
from workers.engine.journal import Journal
from workers.engine.learner import EpisodeEnd, Learner
from workers.engine.points import Counters
from workers.engine.replays import Replays
from workers.engine.scoring import Scoring
from workers.engine.usage import Usage

REPORT_INTERVAL_S = 1.0
REPLAY_INTERVAL_S = 20.0
"""Least training time between two kept training episodes, unless one is the best recorded so far."""
LEAST_REPLAY_INTERVAL_S = 1.0
"""Least training time between two that are; the later one waits."""


class Training:
    """One attempt at one run, in one run directory."""

    def __init__(
        self,
        spec: RunSpec,
        run_dir: Path,
        *,
        attempt: int = 1,
        resume: str | None = None,
        control: Control | None = None,
        on_event: Callable[[AnyEvent], None] | None = None,
    ) -> None:
        """Nothing is started before `run`.

        Args:
            spec: what to train.
            run_dir: where the log, checkpoints and replays go.
            attempt: number of this attempt, from 1.
            resume: file name of the checkpoint in `run_dir/checkpoints` to go on from.
            control: where stops come from.
            on_event: told of every event as it is logged, for a terminal.
        """
        self.spec = spec
        self._resume = resume
        self._control = control or Control()
        self._journal = Journal(run_dir / "attempts" / str(attempt) / "events.log", on_event)
        self._checkpoints = Checkpoints(run_dir / "checkpoints", attempt, self._journal)
        self._replays = Replays(run_dir / "replays", attempt, self._journal)
        self._scoring = Scoring(
            self._journal,
            self._checkpoints,
            self._replays,
            lambda: self._control.stop_requested() is not None,
        )
        self._returns: deque[float] = deque(maxlen=100)
        self._best: float | None = None
        self._best_kept: float | None = None
        self._better: tuple[EpisodeEnd, Counters] | None = None
        self._last_replay_s = -REPLAY_INTERVAL_S
        self._last_evaluation_steps = 0
        self._reported_at = 0.0
        self._reported_agent_steps = 0
        self._usage = Usage()

    def run(self) -> Ended:
        """Train until a bound is met or someone stops it; an error of the training is told in the answer.

        Raises:
            WorldDiedError: a process was killed by a signal.
            OSError: the disk takes no more of the log.
        """
        learner: Learner | None = None
        try:
            learner = ENGINES[self.spec.algorithm].learner(self.spec)
            self._begin(learner)
            ended = self._train(learner)
        except WorldDiedError as error:
            if error.signal is not None:
                # The machine's doing, not the code's: the log ends here, and whoever started this goes on.
                self._journal.log_points()
                self._journal.close()
                raise
            ended = self._failed(error)
        except Exception as error:
            ended = self._failed(error)
        finally:
            if learner is not None:
                learner.close()
        self._journal.say(ended)
        self._journal.close()
        return ended

    def _failed(self, error: Exception) -> Ended:
        self._journal.log_points()
        return Ended(
            time=time.time(),
            state="failed",
            reason=f"{type(error).__name__}: {error}",
            traceback=traceback.format_exc(),
        )

    def _begin(self, learner: Learner) -> None:
        journal = self._journal
        if self._resume is not None:
            state = self._checkpoints.load(self._resume)
            learner.restore(state["learner"])
            journal.counters = Counters(**state["counters"])
            self._returns.extend(state["returns"])
            self._best = state["best"]
            self._best_kept = state.get("best_kept")
            self._last_evaluation_steps = state["last_evaluation_steps"]
            self._scoring.best = state.get("best_evaluation")
            self._last_replay_s = journal.counters.wall_time_s
        journal.say(
            Started(
                time=time.time(),
                device=learner.device,
                pid=os.getpid(),
                resumed_from=self._resume,
                agent_steps=journal.counters.agent_steps,
                versions={
                    "python": platform.python_version(),
                    **{name: version(name) for name in ("torch", "gymnasium", "ale-py", "numpy")},
                },
            )
        )
        journal.note(
            f"resumed from {self._resume} at {journal.counters.agent_steps:,} agent steps"
            if self._resume
            else f"training {self.spec.algorithm} on {self.spec.environment}, seed {self.spec.seed}, "
            f"on {learner.device}"
        )
        journal.flush()

    def _train(self, learner: Learner) -> Ended:
        counters = self._journal.counters
        clock = self._reported_at = time.monotonic()
        self._reported_agent_steps = counters.agent_steps
        reason, state = self._why_end()
        while reason is None:
            self._change_settings(learner)
            advance = learner.advance(self._progress(), watched=self._control.watched)
            for picture in advance.pictures:
                self._control.show(counters.agent_steps, picture)
            now = time.monotonic()
            counters.wall_time_s += now - clock
            clock = now
            counters.agent_steps += advance.agent_steps
            counters.frames += advance.frames
            counters.updates += advance.updates
            for episode in advance.episodes:
                self._episode(learner, episode)
            for warning in advance.warnings:
                self._journal.note(warning, "warning")
            for source, internals in {"": advance.internals, **advance.of_sources}.items():
                self._journal.gather(internals, source)
            if now - self._reported_at >= REPORT_INTERVAL_S:
                self._report()
            every = self.spec.config.evaluation_interval_agent_steps
            if every and counters.agent_steps // every > self._last_evaluation_steps // every:
                self._report()
                self._evaluate(learner, last=self._why_end()[1] == "finished")
                clock = self._reported_at = time.monotonic()  # evaluation is not training time
            reason, state = self._why_end()
            since_s = counters.wall_time_s - self._checkpoints.saved_at_s
            # At the end there is one checkpoint, behind the last score: nothing of its step comes after it.
            if reason is None and since_s >= self.spec.config.checkpoint_interval_s:
                self._report()
                self._checkpoint(learner)
        self._report()
        if state == "finished" and self._last_evaluation_steps < counters.agent_steps:
            self._evaluate(learner, last=True)
            if self._last_evaluation_steps < counters.agent_steps:
                reason, state = "stopped during the last evaluation", "stopped"
        self._checkpoint(learner)
        return Ended(time=time.time(), state="finished" if state == "finished" else "stopped", reason=reason)

    def _change_settings(self, learner: Learner) -> None:
        for asked in self._control.take_settings():
            refused = None
            try:
                self.spec = changed_live(self.spec, asked.changes)
                learner.change(self.spec.config)
            except InvalidSpec as error:
                refused = str(error)
            counters = self._journal.counters
            self._journal.say(
                SettingsChanged(
                    version=asked.version,
                    agent_steps=counters.agent_steps,
                    frames=counters.frames,
                    wall_time_s=counters.wall_time_s,
                    changes=asked.changes,
                    refused=refused,
                )
            )
            self._journal.flush()

    def _why_end(self) -> tuple[str | None, str]:
        stop, counters = self.spec.stop, self._journal.counters
        if stop.agent_steps is not None and counters.agent_steps >= stop.agent_steps:
            return f"reached {counters.agent_steps:,} agent steps", "finished"
        if stop.wall_time_s is not None and counters.wall_time_s >= stop.wall_time_s:
            return f"trained for {counters.wall_time_s:.0f} s", "finished"
        full = len(self._returns) == self._returns.maxlen
        if stop.score is not None and full and self._score() >= stop.score:
            return f"reached a score of {self._score():.1f}", "finished"
        if (asked := self._control.stop_requested()) is not None:
            return asked.reason, "stopped"
        return None, ""

    def _progress(self) -> float:
        bound = self.spec.stop.agent_steps
        return self._journal.counters.agent_steps / bound if bound else 0.0

    def _score(self) -> float:
        return sum(self._returns) / len(self._returns)

    def _episode(self, learner: Learner, episode: EpisodeEnd) -> None:
        counters = self._journal.counters
        if episode.crashed:
            self._journal.note(f"a world broke in episode {episode.seed} and was begun anew", "warning")
            return
        counters.episodes += 1
        self._returns.append(episode.episode_return)
        for source in ("", episode.source) if episode.source else ("",):
            self._journal.points.add("rollout/episode_return", counters, episode.episode_return, source)
            self._journal.points.add("rollout/episode_length", counters, episode.length_steps, source)
        if self._best is None or episode.episode_return > self._best:
            self._best = episode.episode_return
        if episode.recording is not None:
            self._keep_some(learner, episode)

    def _keep_some(self, learner: Learner, episode: EpisodeEnd) -> None:
        """Keep a recorded episode now and then, and the best so far; one that comes too soon waits."""
        counters = self._journal.counters
        best = self._better[0].episode_return if self._better else self._best_kept
        if best is None or episode.episode_return > best:
            self._better = (episode, replace(counters))
        since_s = counters.wall_time_s - self._last_replay_s
        if self._better is not None and since_s >= LEAST_REPLAY_INTERVAL_S:
            self._keep_better(learner)
        elif since_s >= REPLAY_INTERVAL_S:
            self._keep(learner, episode, counters)

    def _keep_better(self, learner: Learner) -> None:
        """Keep the one that waits, if one does."""
        if self._better is not None:
            (episode, counters), self._better = self._better, None
            self._best_kept = episode.episode_return
            self._keep(learner, episode, counters)

    def _keep(self, learner: Learner, episode: EpisodeEnd, counters: Counters) -> None:
        self._last_replay_s = self._journal.counters.wall_time_s
        self._replays.keep(self.spec, episode, learner.action_names, "training", counters)

    def _report(self) -> None:
        """Say how far the run is; points only where something was trained since the last report.

        A checkpoint's step has its points before it: one more, told by an attempt that resumes at the end and
        is lost there, would stay when the next one resumes at the same place.
        """
        counters = self._journal.counters
        now = time.monotonic()
        made = counters.agent_steps - self._reported_agent_steps
        agent_steps_per_s = made / max(now - self._reported_at, 1e-3)
        self._reported_at, self._reported_agent_steps = now, counters.agent_steps
        if made:
            frames_per_step = counters.frames / max(counters.agent_steps, 1)
            self._journal.points.gather("speed/agent_steps_per_s", agent_steps_per_s)
            self._journal.points.gather("speed/frames_per_s", agent_steps_per_s * frames_per_step)
            for metric, value in self._usage.take().items():
                self._journal.points.gather(metric, value)
        self._journal.log_points(settled=True)
        self._journal.say(
            Report(
                agent_steps=counters.agent_steps,
                frames=counters.frames,
                updates=counters.updates,
                wall_time_s=counters.wall_time_s,
                episodes=counters.episodes,
                agent_steps_per_s=agent_steps_per_s,
                mean_return_100=self._score() if self._returns else None,
                best_return=self._best,
            )
        )
        self._journal.flush()

    def _checkpoint(self, learner: Learner, *, evaluated: bool = False) -> None:
        self._keep_better(learner)  # a resume from here finds what was kept before
        self._checkpoints.save(
            lambda: {
                "learner": learner.state(),
                "returns": list(self._returns),
                "best": self._best,
                "best_kept": self._best_kept,
                "last_evaluation_steps": self._last_evaluation_steps,
                "best_evaluation": self._scoring.best,
            },
            evaluated=evaluated,
        )

    def _evaluate(self, learner: Learner, *, last: bool = False) -> None:
        """Score the present parameters, then save them: what a resumed run repeats, the cut takes away.

        The other way round, a run killed in between would have the score twice or never.
        """
        self._keep_better(learner)  # what is kept is told in the order of its steps
        scored = self.spec.config.evaluation_episodes > 0
        if scored:
            try:
                self._scoring.score(self.spec, learner)
                if last:
                    self._scoring.score_best_kept(self.spec, learner)
            except EvaluationInterrupted:
                return  # due again after a resume
        self._last_evaluation_steps = self._journal.counters.agent_steps
        self._checkpoint(learner, evaluated=scored)
