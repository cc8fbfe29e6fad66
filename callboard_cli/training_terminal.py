"""Terminal output of `callboard train`."""

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from backend.specs.events import (
    AnyEvent,
    EndedEvent,
    EvaluationEvent,
    LogEvent,
    ReportEvent,
    StartingEvent,
)
from backend.specs.run import RunSpec
from callboard_cli import score_text


class TrainingTerminal:
    """Shows a training's events as a progress line, or prints them as JSON lines."""

    def __init__(self, spec: RunSpec, *, as_json: bool) -> None:
        self.last: ReportEvent | None = None
        self.evaluation: EvaluationEvent | None = None
        """The evaluation of the last parameters."""
        self.ended: EndedEvent | None = None
        self._as_json = as_json
        self._spec = spec
        self._progress = Progress(
            TextColumn("{task.fields[state]}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[line]}"),
            console=Console(stderr=True),
            transient=True,
            disable=as_json,
        )
        self._task = self._progress.add_task("", total=1.0, state="starting", line="")

    def __enter__(self) -> "TrainingTerminal":
        """Show the progress line."""
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the progress line."""
        self._progress.stop()

    def on_event(self, event: AnyEvent) -> None:
        """Show an event."""
        match event:
            case StartingEvent():
                self._progress.update(self._task, line=event.phase)
            case ReportEvent():
                self.last = event
                self._print_json(event)
                self._show(event)
            case EvaluationEvent():
                # A later evaluation at the same agent steps is of the best checkpoint.
                if self.evaluation is None or event.agent_steps > self.evaluation.agent_steps:
                    self.evaluation = event
                self._print_json(event)
            case LogEvent() if not self._as_json:
                self._progress.console.print(event.message, highlight=False)
            case LogEvent() if event.level != "info":
                typer.echo(event.message, err=True)
            case EndedEvent():
                self.ended = event
            case _:
                pass

    def _print_json(self, event: ReportEvent | EvaluationEvent) -> None:
        if self._as_json:
            typer.echo(event.model_dump_json())

    def _show(self, report: ReportEvent) -> None:
        stop = self._spec.stop
        fractions = [
            report.agent_steps / stop.agent_steps if stop.agent_steps else 0.0,
            report.wall_time_s / stop.wall_time_s if stop.wall_time_s else 0.0,
        ]
        done = min(1.0, max(fractions))
        parts = [
            f"{report.agent_steps:,} agent steps",
            f"{report.agent_steps_per_s:,.0f}/s",
            f"score {score_text(report.mean_return_100)}",
        ]
        if done:
            left_s = report.wall_time_s * (1 - done) / done
            parts.append(f"{_duration(left_s)} left")
        self._progress.update(self._task, completed=done, state="training", line="  ".join(parts))


def _duration(seconds: float) -> str:
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours} h {m:02d} min" if hours else f"{m} min {s:02d} s"
