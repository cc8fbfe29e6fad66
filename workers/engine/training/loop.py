"""The training loop: build, resume, train, report, save, evaluate, end. Independent of the algorithm."""

import time
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from backend.specs import machine_faults
from backend.specs.events import AnyEvent, EndedEvent, ReportEvent, SettingsChangedEvent
from backend.specs.problems import InvalidSpec
from backend.specs.protocols import starts_protocol
from backend.specs.run import RunSpec, change_live
from backend.specs.run_fields import SCORE_EPISODES
from backend.specs.start_sets import STARTS_FILE
from workers.engine.envs.info import MAX_NAMES
from workers.engine.methods.base import EpisodeEnd, Learner, StepResult
from workers.engine.methods.registry import METHODS
from workers.engine.processes.child import ChildDiedError
from workers.engine.processes.phases import enter_phase
from workers.engine.training.checkpoint import NAME, Checkpoints, DamagedCheckpointError
from workers.engine.training.control import Control
from workers.engine.training.evaluation import EvaluationInterrupted
from workers.engine.training.gpu_memory import out_of_memory_reason
from workers.engine.training.histograms import Histograms, critic_metrics
from workers.engine.training.journal import Counters, Journal
from workers.engine.training.replays import Replays, TrainingReplays
from workers.engine.training.scoring import Scoring
from workers.engine.training.start import log_provenance, log_started, logged_phases
from workers.engine.training.usage import Usage, gpu_of

if TYPE_CHECKING:
    from torch import Tensor

REPORT_INTERVAL_S = 1.0


class _StopReason(NamedTuple):
    """Why training ends without an error."""

    state: Literal["finished", "stopped"]
    reason: str


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
        """Prepare the attempt; `run` starts it.

        Args:
            spec: what to train.
            run_dir: where the log, checkpoints and replays go.
            attempt: number of this attempt, from 1.
            resume: file name of the checkpoint in `run_dir/checkpoints` to resume from.
            control: source of stops and settings changes.
            on_event: called with every event but points as it is logged, for a terminal.
        """
        self.spec = spec
        self._resume = resume
        self._control = control or Control()
        self._journal = Journal(run_dir / "attempts" / str(attempt) / "events.log", on_event)
        self._checkpoints = Checkpoints(run_dir / "checkpoints", attempt, self._journal)
        replays = Replays(run_dir / "replays", attempt, self._journal)
        self._replays = TrainingReplays(replays, self._journal)
        self._scoring = Scoring(
            self._journal,
            self._checkpoints,
            replays,
            None if starts_protocol(spec.evaluation_protocol) is None else run_dir / STARTS_FILE,
            lambda: self._control.stop_requested() is not None,
        )
        self._returns: deque[float] = deque(maxlen=SCORE_EPISODES)
        self._best_return: float | None = None
        self._last_evaluation_steps = 0
        self._is_best_score_due = False
        """Whether the last evaluation was interrupted after the score of the current parameters."""
        self._counted_until = 0.0
        """Monotonic time up to which the training time is counted."""
        self._reported_at = 0.0
        self._reported_agent_steps = self._reported_frames = 0
        self._agent_steps_per_s = 0.0
        """Since the report before the last that had new agent steps."""
        self._info_names: set[str] = set()
        self._usage = Usage()
        self._histograms = Histograms(self._journal)

    def run(self) -> EndedEvent:
        """Train until a stop condition is met or a stop is requested; return training errors, not raise them.

        Raises:
            ChildDiedError: a process was killed by a signal.
            DamagedCheckpointError: the checkpoint to resume from cannot be read.
            Exception: any error that a full or broken disk caused, mostly an OSError.
        """
        learner: Learner | None = None
        try:
            with self._control.interrupting(), logged_phases(self._journal):
                packages = log_provenance(self._journal, self.spec)
                enter_phase("building environments and network")
                create = METHODS[self.spec.algorithm].learner
                learner = create(self.spec, restored=self._resume is not None)
                self._start(learner, packages)
            ended = self._train(learner)
        except KeyboardInterrupt:
            if (requested := self._control.stop_requested()) is None:
                raise
            ended = _ended_event("stopped", f"{requested.reason} while it was starting")
        except ChildDiedError as error:
            if error.signal is not None:
                # Killed from outside: the log ends here, and the supervisor queues the run again.
                self._journal.emit_points()
                self._journal.close()
                raise
            ended = self._failed(error)
        except Exception as error:
            if machine_faults.errno_of(error) is not None:
                raise
            if isinstance(error, DamagedCheckpointError):
                self._journal.close()
                raise
            ended = self._failed(error)
        finally:
            if learner is not None:
                learner.close()
        self._journal.emit(ended)
        self._journal.close()
        return ended

    def adopt(self, theta: "Tensor", counters: Counters) -> EndedEvent:
        """Write a checkpoint of an agent that was trained elsewhere, and end without training.

        Args:
            theta: its parameters, (P,), in the order of the network's.
            counters: how long it was trained.

        Raises:
            ValueError: it is of another network.
        """
        learner = METHODS[self.spec.algorithm].learner(self.spec, restored=True)
        try:
            packages = log_provenance(self._journal, self.spec)
            self._journal.counters = counters
            learner.settle(self._progress())
            learner.restore(_with_parameters(learner.state(), theta))
            log_started(self._journal, self.spec, learner, None, None, packages)
            self._report(None)
            self._checkpoint(learner)
        finally:
            learner.close()
        ended = _ended_event("stopped", f"imported after {counters.agent_steps:,} agent steps elsewhere")
        self._journal.emit(ended)
        self._journal.close()
        return ended

    def _failed(self, error: Exception) -> EndedEvent:
        self._journal.emit_points()
        reason = out_of_memory_reason(error, self.spec) or f"{type(error).__name__}: {error}"
        return _ended_event("failed", reason, traceback.format_exc())

    def _start(self, learner: Learner, packages: dict[str, str]) -> None:
        journal = self._journal
        if self._resume is not None:
            enter_phase(f"restoring {self._resume}")
            state = self._checkpoints.load(self._resume)
            learner.restore(state["learner"])
            journal.counters = Counters(**state["counters"])
            self._returns.extend(state["returns"])
            self._best_return = state["best"]
            self._replays.restore(state["best_kept"])
            self._last_evaluation_steps = state["last_evaluation_steps"]
            self._is_best_score_due = state["best_is_due"]
            # A fork's first checkpoint is a copy: the scores with it are of its parent's files and settings.
            resumed = NAME.fullmatch(self._resume)
            is_copy = resumed is not None and int(resumed["attempt"]) == 0
            self._scoring.best = None if is_copy else state["best_evaluation"]
        else:
            journal.counters.frames += learner.random_play.frames
            journal.counters.wall_time_s += learner.random_play.time_s
        self._usage.gpu = gpu_of(next(learner.network.parameters()).device)
        log_started(journal, self.spec, learner, self._usage.gpu, self._resume, packages)

    def _train(self, learner: Learner) -> EndedEvent:
        """Advance until the run ends; report, evaluate and save on the way.

        A finished run is evaluated last.
        """
        counters = self._journal.counters
        self._counted_until = self._reported_at = time.monotonic()
        self._reported_agent_steps, self._reported_frames = counters.agent_steps, counters.frames
        end = self._stop_reason()
        while end is None:
            self._change_settings(learner)
            self._advance(learner)
            interval = self.spec.config.evaluation_interval_agent_steps
            if interval and counters.agent_steps // interval > self._last_evaluation_steps // interval:
                self._settle(learner)
                self._report(learner)
                end = self._stop_reason()
                self._evaluate(learner, last=end is not None and end.state == "finished")
                self._counted_until = self._reported_at = time.monotonic()  # evaluation is not training time
            is_checkpoint_due = (
                self._control.take_checkpoint_request()
                or self._since_checkpoint_s() >= self.spec.config.checkpoint_interval_s
            )
            if is_checkpoint_due:
                self._settle(learner)
            end = self._stop_reason()
            # The last checkpoint is saved below, after the last evaluation: no event of its step may follow.
            if end is None and is_checkpoint_due:
                self._report(learner)
                self._checkpoint(learner)
            elif end is None and self._counted_until - self._reported_at >= REPORT_INTERVAL_S:
                self._report(learner)
        self._settle(learner)
        self._report(learner)
        if end.state == "finished" and self._is_evaluation_due():
            self._evaluate(learner, last=True)
            if self._is_evaluation_due():
                end = _StopReason("stopped", "stopped during the last evaluation")
        self._checkpoint(learner)  # nothing new if an evaluation saved this step
        return _ended_event(end.state, end.reason)

    def _advance(self, learner: Learner) -> None:
        """Train for a moment, and count and record what came of it."""
        self._record_result(learner, learner.advance(self._progress(), watched=self._control.watched))

    def _settle(self, learner: Learner) -> None:
        """Pause the learner, and count and record what it did since `_advance`.

        Comes before each report that an evaluation or a checkpoint follows, neither of which then contains
        more than was counted.
        """
        result = learner.settle(self._progress())
        if not result.agent_steps:  # the last checkpoint may be of this step: see `_report`
            result.metrics, result.metrics_by_source = {}, {}
        self._record_result(learner, result)

    def _record_result(self, learner: Learner, result: StepResult) -> None:
        """Count and record what the learner has returned."""
        counters = self._journal.counters
        for jpeg in result.live_frames:
            self._control.send_frame(counters.agent_steps, jpeg)
        now = time.monotonic()
        counters.wall_time_s += now - self._counted_until
        self._counted_until = now
        counters.agent_steps += result.agent_steps
        counters.frames += result.frames
        counters.updates += result.updates
        for episode in result.episodes:
            self._record_episode(learner, episode)
        for warning in result.warnings:
            self._journal.log(warning, "warning")
        for source, metrics in {"": result.metrics, **result.metrics_by_source}.items():
            self._journal.record(metrics, source)
        for name, (total, count) in result.info.items():
            if len(self._info_names | {name}) <= MAX_NAMES:
                self._info_names.add(name)
                self._journal.record_total(f"env/{name}", total, count)

    def _change_settings(self, learner: Learner) -> None:
        for command in self._control.take_settings():
            refused = None
            try:
                self.spec = change_live(self.spec, command.changes)
                learner.change(self.spec.config)
            except InvalidSpec as error:
                refused = str(error)
            counters = self._journal.counters
            self._journal.emit(
                SettingsChangedEvent(
                    version=command.version,
                    agent_steps=counters.agent_steps,
                    frames=counters.frames,
                    wall_time_s=counters.wall_time_s,
                    changes=command.changes,
                    refused=refused,
                )
            )
            self._journal.flush()

    def _stop_reason(self) -> _StopReason | None:
        """Why training ends now; None while it continues."""
        stop, counters = self.spec.stop, self._journal.counters
        if stop.agent_steps is not None and counters.agent_steps >= stop.agent_steps:
            return _StopReason("finished", f"reached {counters.agent_steps:,} agent steps")
        if stop.wall_time_s is not None and counters.wall_time_s >= stop.wall_time_s:
            return _StopReason("finished", f"trained for {counters.wall_time_s:.0f} s")
        full = len(self._returns) == self._returns.maxlen
        if stop.score is not None and full and self._mean_return_100() >= stop.score:
            return _StopReason("finished", f"reached a score of {self._mean_return_100():.1f}")
        if (requested := self._control.stop_requested()) is not None:
            return _StopReason("stopped", requested.reason)
        return None

    def _since_checkpoint_s(self) -> float:
        return self._journal.counters.wall_time_s - self._checkpoints.saved_at_s

    def _progress(self) -> float:
        bound = self.spec.annealed_over_agent_steps
        return self._journal.counters.agent_steps / bound if bound else 0.0

    def _mean_return_100(self) -> float:
        return sum(self._returns) / len(self._returns)

    def _record_episode(self, learner: Learner, episode: EpisodeEnd) -> None:
        counters = self._journal.counters
        if episode.crashed:
            dropped = f"environment crashed in the episode with the seed {episode.seed}; restarted"
            self._journal.log(f"{dropped}: {episode.crash}", "warning")
            return
        counters.episodes += 1
        self._returns.append(episode.episode_return)
        self._histograms.add({"rollout/episode_return": np.array([episode.episode_return])})
        for source in ("", episode.source) if episode.source else ("",):
            self._journal.add_point("rollout/episode_return", episode.episode_return, source)
            self._journal.add_point("rollout/episode_length", episode.length_steps, source)
        if self._best_return is None or episode.episode_return > self._best_return:
            self._best_return = episode.episode_return
        if episode.recording is not None:
            self._replays.select(self.spec, episode, learner.action_names)

    def _report(self, learner: Learner | None) -> None:
        """Emit a report and the points so far; those of speed only if agent steps were taken since the last.

        Comes before each checkpoint: a point that is logged after it, at the same step, would be kept in a
        resume, and logged again. `learner`: what has trained since the last; None if nothing has.
        """
        counters = self._journal.counters
        now = time.monotonic()
        new_steps = counters.agent_steps - self._reported_agent_steps
        if new_steps:
            if learner is not None:
                samples = learner.samples()
                self._histograms.add(samples)
                self._journal.record(critic_metrics(samples))
            self._histograms.emit()
            passed_s = max(now - self._reported_at, 1e-3)
            self._agent_steps_per_s = new_steps / passed_s
            self._journal.record(
                {
                    "speed/agent_steps_per_s": self._agent_steps_per_s,
                    "speed/frames_per_s": (counters.frames - self._reported_frames) / passed_s,
                    **self._usage.sample(),
                }
            )
        self._reported_at = now
        self._reported_agent_steps, self._reported_frames = counters.agent_steps, counters.frames
        self._journal.emit_points(include_means=True)
        self._journal.emit(
            ReportEvent(
                agent_steps=counters.agent_steps,
                frames=counters.frames,
                updates=counters.updates,
                wall_time_s=counters.wall_time_s,
                episodes=counters.episodes,
                agent_steps_per_s=self._agent_steps_per_s,
                mean_return_100=self._mean_return_100() if self._returns else None,
                best_return=self._best_return,
            )
        )
        self._journal.flush()

    def _checkpoint(self, learner: Learner, *, evaluated: bool = False) -> None:
        self._replays.save_best(self.spec, learner.action_names)  # its event must precede the checkpoint
        self._checkpoints.save(
            lambda: {
                "learner": learner.state(),
                "returns": list(self._returns),
                "best": self._best_return,
                "best_kept": self._replays.best_saved,
                "last_evaluation_steps": self._last_evaluation_steps,
                "best_is_due": self._is_best_score_due,
                "best_evaluation": self._scoring.best,
            },
            learner.network,
            self.spec,
            evaluated=evaluated,
        )

    def _evaluate(self, learner: Learner, *, last: bool = False) -> None:
        """Score the current parameters, at the end also the best ones, then save.

        Scores come before the checkpoint. A run that is killed in between resumes from an older checkpoint:
        these scores are superseded, and measured again. If the checkpoint came first, they would be missing.

        A score that a stop interrupts is due again after a resume, that of the best parameters too: a
        finished run has both. What was emitted before is not repeated: the checkpoint remembers it.
        """
        # Before the evaluation's replays, whose agent steps are later.
        self._replays.save_best(self.spec, learner.action_names)
        is_scored = self.spec.config.evaluation_episodes > 0
        steps = self._journal.counters.agent_steps
        try:
            if is_scored and self._last_evaluation_steps < steps:
                self._scoring.score(self.spec, learner)
            self._last_evaluation_steps, self._is_best_score_due = steps, last
            if is_scored and last:
                self._scoring.score_best(self.spec, learner)
            self._is_best_score_due = False
        except EvaluationInterrupted:
            if self._last_evaluation_steps < steps:
                return
        self._checkpoint(learner, evaluated=is_scored)

    def _is_evaluation_due(self) -> bool:
        return self._last_evaluation_steps < self._journal.counters.agent_steps or self._is_best_score_due


def _with_parameters(state: Any, theta: "Tensor") -> Any:
    """A learner's state with these parameters, also those of its target network."""
    if not isinstance(state, dict):
        return state
    if "theta" in state and state["theta"].shape != theta.shape:
        raise ValueError(f"has {theta.numel()} parameters, and the network {state['theta'].numel()}")
    names = ("theta", "theta_minus")
    return {
        name: theta.clone() if name in names else _with_parameters(value, theta)
        for name, value in state.items()
    }


def _ended_event(
    state: Literal["finished", "stopped", "failed"], reason: str, trace: str | None = None
) -> EndedEvent:
    return EndedEvent(time=time.time(), state=state, reason=reason, traceback=trace)
