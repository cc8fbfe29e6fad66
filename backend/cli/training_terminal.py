"""What a training in a terminal shows."""

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from backend.specs.events import AnyEvent, Ended, Log, Report
from backend.specs.run import RunSpec


class TrainingTerminal:
    """A progress line, or JSON lines, of a training's events."""

    def __init__(self, spec: RunSpec, *, as_json: bool) -> None:
        self.last: Report | None = None
        self.ended: Ended | None = None
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
        """Itself, shown."""
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the line away."""
        self._progress.stop()

    def on_event(self, event: AnyEvent) -> None:
        """Show what the training tells."""
        match event:
            case Report():
                self.last = event
                if self._as_json:
                    typer.echo(event.model_dump_json(exclude={"type"}))
                self._show(event)
            case Log() if not self._as_json:
                self._progress.console.print(event.message, highlight=False)
            case Ended():
                self.ended = event
            case _:
                pass

    def _show(self, report: Report) -> None:
        stop = self._spec.stop
        shares = [
            report.agent_steps / stop.agent_steps if stop.agent_steps else 0.0,
            report.wall_time_s / stop.wall_time_s if stop.wall_time_s else 0.0,
        ]
        done = min(1.0, max(shares))
        score = "–" if report.mean_return_100 is None else f"{report.mean_return_100:.1f}"
        parts = [
            f"{report.agent_steps:,} agent steps",
            f"{report.agent_steps_per_s:,.0f}/s",
            f"score {score}",
        ]
        if done:
            left_s = report.wall_time_s * (1 - done) / done
            parts.append(f"{_duration(left_s)} left")
        self._progress.update(self._task, completed=done, state="training", line="  ".join(parts))


def _duration(seconds: float) -> str:
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours} h {m:02d} min" if hours else f"{m} min {s:02d} s"
