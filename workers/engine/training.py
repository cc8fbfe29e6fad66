"""The life of one engine: build, resume, train, report, save, evaluate, end. Knows no algorithm."""

import math
import os
import platform
import time
import traceback
from collections import deque
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from backend.specs.events import (
    AnyEvent,
    CheckpointSaved,
    CheckpointsRemoved,
    Ended,
    Episode,
    Evaluation,
    Log,
    Report,
    SettingsChanged,
    Started,
)
from backend.specs.run import InvalidSpec, RunSpec, changed_live
from workers.engine import checkpoint
from workers.engine.algorithms import ENGINES
from workers.engine.control import Control
from workers.engine.envs.vector import WorldDiedError
from workers.engine.evaluation import (
    STREAM,
    EvaluationInterrupted,
    EvaluationResult,
    evaluate,
    load_policy,
)
from workers.engine.event_log import EventLog
from workers.engine.learner import EpisodeEnd, Learner, Policy
from workers.engine.points import Counters, PointBuffer
from workers.engine.seeds import episode_seed
from workers.engine.usage import Usage

REPORT_INTERVAL_S = 1.0
KEPT_CHECKPOINTS = 3
"""Newest checkpoints kept, beside those that were evaluated."""
REPLAY_INTERVAL_S = 20.0
"""Least training time between two kept training episodes, unless one is the best so far."""


class DivergedError(RuntimeError):
    """Training has left the numbers; what was saved before is intact."""


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
        self.run_dir = run_dir
        self.attempt = attempt
        self._resume = resume
        self._control = control or Control()
        self._on_event = on_event
        self._log = EventLog(run_dir / "attempts" / str(attempt) / "events.log")
        self._counters = Counters()
        self._points = PointBuffer()
        self._returns: deque[float] = deque(maxlen=100)
        self._best: float | None = None
        self._evaluated: set[str] = set()
        self._saved: list[str] = []
        self._last_replay_s = -REPLAY_INTERVAL_S
        self._last_checkpoint_s = 0.0
        self._last_evaluation_steps = 0
        self._best_evaluation: tuple[float, str] | None = None
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
                self._flush_points()
                self._log.close()
                raise
            ended = self._failed(error)
        except Exception as error:
            ended = self._failed(error)
        finally:
            if learner is not None:
                learner.close()
        self._say(ended)
        self._log.close()
        return ended

    def _failed(self, error: Exception) -> Ended:
        self._flush_points()
        return Ended(
            time=time.time(),
            state="failed",
            reason=f"{type(error).__name__}: {error}",
            traceback=traceback.format_exc(),
        )

    def _begin(self, learner: Learner) -> None:
        if self._resume is not None:
            state = checkpoint.load(self.run_dir / "checkpoints" / self._resume)
            learner.restore(state["learner"])
            self._counters = Counters(**state["counters"])
            self._returns.extend(state["returns"])
            self._best = state["best"]
            self._last_evaluation_steps = state["last_evaluation_steps"]
            self._best_evaluation = state.get("best_evaluation")
            self._saved = list(state["saved"])
            self._evaluated = set(state["evaluated"])
            self._last_checkpoint_s = self._last_replay_s = self._counters.wall_time_s
        self._say(
            Started(
                time=time.time(),
                device=learner.device,
                pid=os.getpid(),
                resumed_from=self._resume,
                agent_steps=self._counters.agent_steps,
                versions={
                    "python": platform.python_version(),
                    **{name: version(name) for name in ("torch", "gymnasium", "ale-py", "numpy")},
                },
            )
        )
        self._note(
            f"resumed from {self._resume} at {self._counters.agent_steps:,} agent steps"
            if self._resume
            else f"training {self.spec.algorithm} on {self.spec.environment}, seed {self.spec.seed}, "
            f"on {learner.device}"
        )
        self._log.flush()

    def _train(self, learner: Learner) -> Ended:
        counters = self._counters
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
                self._note(warning, "warning")
            for source, internals in {"": advance.internals, **advance.of_sources}.items():
                self._gather(internals, source)
            if now - self._reported_at >= REPORT_INTERVAL_S:
                self._report()
            every = self.spec.config.evaluation_interval_agent_steps
            if every and counters.agent_steps // every > self._last_evaluation_steps // every:
                self._report()
                self._evaluate(learner, last=self._why_end()[1] == "finished")
                clock = self._reported_at = time.monotonic()  # evaluation is not training time
            reason, state = self._why_end()
            since_s = counters.wall_time_s - self._last_checkpoint_s
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
        self._note(f"{state}: {reason}")
        return Ended(time=time.time(), state="finished" if state == "finished" else "stopped", reason=reason)

    def _change_settings(self, learner: Learner) -> None:
        for asked in self._control.take_settings():
            refused = None
            try:
                self.spec = changed_live(self.spec, asked.changes)
                learner.change(self.spec.config)
            except InvalidSpec as error:
                refused = str(error)
            counters = self._counters
            self._say(
                SettingsChanged(
                    version=asked.version,
                    agent_steps=counters.agent_steps,
                    frames=counters.frames,
                    wall_time_s=counters.wall_time_s,
                    changes=asked.changes,
                    refused=refused,
                )
            )
            self._log.flush()

    def _why_end(self) -> tuple[str | None, str]:
        stop, counters = self.spec.stop, self._counters
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
        return self._counters.agent_steps / bound if bound else 0.0

    def _score(self) -> float:
        return sum(self._returns) / len(self._returns)

    def _episode(self, learner: Learner, episode: EpisodeEnd) -> None:
        counters = self._counters
        if episode.crashed:
            self._note(f"a world broke in episode {episode.seed} and was begun anew", "warning")
            return
        counters.episodes += 1
        self._returns.append(episode.episode_return)
        for source in ("", episode.source) if episode.source else ("",):
            self._points.add("rollout/episode_return", counters, episode.episode_return, source)
            self._points.add("rollout/episode_length", counters, episode.length_steps, source)
        best = self._best is None or episode.episode_return > self._best
        if best:
            self._best = episode.episode_return
        if episode.recording is None:
            return
        due = counters.wall_time_s - self._last_replay_s >= REPLAY_INTERVAL_S
        if due or (best and counters.wall_time_s - self._last_replay_s >= 1.0):
            self._last_replay_s = counters.wall_time_s
            self._keep(episode, learner.action_names, "training")

    def _keep(self, episode: EpisodeEnd, action_names: tuple[str, ...], kind: str) -> None:
        assert episode.recording is not None
        counters = self._counters
        name = f"a{self.attempt}-{kind}-s{counters.agent_steps:012d}.npz"
        episode.recording.save(
            self.run_dir / "replays" / name,
            seed=episode.seed,
            evaluation=kind == "evaluation",
            frames_per_step=getattr(self.spec.environment_config, "frame_skip", 1),
            action_names=action_names,
        )
        self._say(
            Episode(
                agent_steps=counters.agent_steps,
                frames=counters.frames,
                wall_time_s=counters.wall_time_s,
                kind="evaluation" if kind == "evaluation" else "training",
                source=episode.source,
                seed=episode.seed,
                episode_return=episode.episode_return,
                length_steps=episode.length_steps,
                length_frames=episode.length_frames,
                replay=name,
            )
        )

    def _report(self) -> None:
        """Say how far the run is; no point of a rate where nothing was trained since the last report."""
        counters = self._counters
        now = time.monotonic()
        made = counters.agent_steps - self._reported_agent_steps
        agent_steps_per_s = made / max(now - self._reported_at, 1e-3)
        self._reported_at, self._reported_agent_steps = now, counters.agent_steps
        if made:
            frames_per_step = counters.frames / max(counters.agent_steps, 1)
            self._points.gather("speed/agent_steps_per_s", agent_steps_per_s)
            self._points.gather("speed/frames_per_s", agent_steps_per_s * frames_per_step)
        for metric, value in self._usage.take().items():
            self._points.gather(metric, value)
        self._points.settle(counters)
        self._flush_points()
        self._say(
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
        self._log.flush()

    def _checkpoint(self, learner: Learner, *, evaluated: bool = False) -> str:
        """Save; every earlier event is on disk before the checkpoint's."""
        counters = self._counters
        name = checkpoint.file_name(self.attempt, counters.agent_steps)
        self._points.settle(counters)
        self._flush_points()
        if name not in self._saved:
            digest, size = checkpoint.save(
                self.run_dir / "checkpoints" / name,
                {
                    "learner": learner.state(),
                    "counters": counters.as_dict(),
                    "returns": list(self._returns),
                    "best": self._best,
                    "last_evaluation_steps": self._last_evaluation_steps,
                    "best_evaluation": self._best_evaluation,
                    "saved": [*self._saved, name],
                    "evaluated": sorted(self._evaluated),
                },
            )
            self._saved.append(name)
            self._say(
                CheckpointSaved(
                    agent_steps=counters.agent_steps,
                    frames=counters.frames,
                    updates=counters.updates,
                    episodes=counters.episodes,
                    wall_time_s=counters.wall_time_s,
                    file=name,
                    sha256=digest,
                    size_bytes=size,
                )
            )
        if evaluated:
            self._evaluated.add(name)
        thinned = [n for n in self._saved[:-KEPT_CHECKPOINTS] if n not in self._evaluated]
        if thinned:
            self._saved = [n for n in self._saved if n not in thinned]
            self._say(CheckpointsRemoved(files=thinned))
        self._log.flush(sync=True)
        for old in thinned:
            (self.run_dir / "checkpoints" / old).unlink(missing_ok=True)
        self._last_checkpoint_s = counters.wall_time_s
        return name

    def _evaluate(self, learner: Learner, *, last: bool = False) -> None:
        """Score the present parameters, then save them: what a resumed run repeats, the cut takes away.

        The other way round, a run killed in between would have the score twice or never.
        """
        counters = self._counters
        episodes = self.spec.config.evaluation_episodes
        if episodes:
            try:
                self._score_policy(learner, episodes)
                if last:
                    self._score_best_kept(learner, episodes)
            except EvaluationInterrupted:
                return  # due again after a resume
        self._last_evaluation_steps = counters.agent_steps
        self._checkpoint(learner, evaluated=bool(episodes))

    def _score_policy(self, learner: Learner, episodes: int) -> None:
        steps = self._counters.agent_steps
        name = checkpoint.file_name(self.attempt, steps)
        seed = episode_seed(self.spec.seed, STREAM, steps) % 2**31
        result = self._play_evaluation(learner.policy(seed), name, episodes, seed)
        self._points.add(f"eval/{result.protocol}/mean_return", self._counters, result.mean_return)
        self._keep(result.first_episode, result.action_names, "evaluation")
        if self._best_evaluation is None or result.mean_return > self._best_evaluation[0]:
            self._best_evaluation = (result.mean_return, name)

    def _score_best_kept(self, learner: Learner, episodes: int) -> None:
        """Score the best of all evaluated parameters from new starts, as Nair et al. 2015 (section 5.2)."""
        if not self.spec.config.scores_best_kept or self._best_evaluation is None:
            return
        steps = self._counters.agent_steps
        _, name = self._best_evaluation
        seed = episode_seed(self.spec.seed, STREAM + 1, steps) % 2**31
        path = self.run_dir / "checkpoints" / name
        if name == checkpoint.file_name(self.attempt, steps):
            policy = learner.policy(seed)
        elif path.exists():
            policy = load_policy(self.spec, path, seed)
        else:
            self._note(f"the best-kept parameters, {name}, are not on this host and not scored", "warning")
            return
        result = self._play_evaluation(policy, name, episodes, seed)
        self._points.add(f"eval/{result.protocol}/best_kept_return", self._counters, result.mean_return)

    def _play_evaluation(self, policy: Policy, name: str, episodes: int, seed: int) -> EvaluationResult:
        """Play with the parameters that the checkpoint `name` has, or will have, and tell how it went."""
        counters = self._counters
        result = evaluate(
            policy,
            self.spec,
            episodes=episodes,
            seed=seed,
            processes=_processes(self.spec),
            interrupted=lambda: self._control.stop_requested() is not None,
        )
        self._flush_points()
        self._say(
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
        self._note(
            f"scored {result.mean_return:.2f} over {episodes} {result.protocol} episodes "
            f"with {name} in {result.time_s:.0f} s"
        )
        return result

    def _gather(self, internals: dict[str, float], source: str) -> None:
        for metric, value in internals.items():
            if not math.isfinite(value):
                raise DivergedError(f"{metric} became {value}; a smaller learning rate may keep it finite")
            self._points.gather(metric, value, source)

    def _note(self, message: str, level: Literal["info", "warning"] = "info") -> None:
        self._say(Log(time=time.time(), level=level, message=message))

    def _flush_points(self) -> None:
        for points in self._points.take():
            self._log.add(points)

    def _say(self, event: AnyEvent) -> None:
        self._log.add(event)
        if self._on_event is not None:
            self._on_event(event)


def _processes(spec: RunSpec) -> int:
    """That step the environments of an evaluation: as many as train, at most one a core."""
    config = spec.config.model_dump()
    return min(int(config.get("n_w", config.get("n_actors", 1))), len(os.sched_getaffinity(0)))
