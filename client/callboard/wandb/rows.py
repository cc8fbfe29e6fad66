"""The rows that a script logs, with the steps that it names for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from callboard.axes import Axes
from callboard.cleaning import as_number, as_steps, as_text
from callboard.external import ExternalRun
from callboard.foreign import Foreign
from callboard.handlers import pass_on
from callboard.media import Histogram, Image, Media
from callboard.tally import warn
from callboard.wandb.media import NotKept, WandbVideo
from callboard.wandb.settings import WandbSummary, flat


class Rows:
    """The row of a run that is not complete yet, and what the run's steps count."""

    def __init__(
        self, external: ExternalRun, foreign: Foreign, summary: WandbSummary, unit: str | None, step: int
    ) -> None:
        """Hold no row yet.

        Args:
            external: the run.
            foreign: what says, once a run, what is not used.
            summary: gets the last values.
            unit: what the run's steps count, if the script has said so.
            step: number of the first row.
        """
        self.external = external
        self.step = step
        self.axes = Axes()
        self.has_writer = False
        """Whether a `SummaryWriter` logs to the run as well."""
        self._foreign = foreign
        self._summary = summary
        self._is_automatic = unit is None
        self._unit = unit
        self._held: dict[Any, Any] = {}
        self._logged: set[str] = set()
        """Metrics that may be the axis, as far as they were logged."""
        self._axis_steps: Any = None
        """The last value of the axis that the script has named."""

    def log(self, data: Any, step: Any, commit: bool | None) -> None:
        """Log the values of a row, or hold them until it is complete. Never raises."""
        if not issubclass(type(data), Mapping):
            self.external.log(data)  # which counts and reports it
            return
        if step is not None:
            steps = as_steps(step).value
            if steps is not None and steps != self.step:
                self.complete()
                self.step = steps
        try:
            self._held |= flat(data)
        except Exception as error:  # of any object
            pass_on(error)
            warn("callboard: a row is not kept: %s", as_text(error))
        if commit is False:
            return
        self.complete()
        if step is None or commit:
            self.step += 1

    def complete(self) -> None:
        """Log the row that is held."""
        row, self._held = self._held, {}
        if row:
            try:
                self._log(row)
            except Exception as error:  # of any object
                pass_on(error)
                warn("callboard: a row is not kept: %s", as_text(error))

    def set_unit(self, unit: str) -> None:
        """Set what the steps count."""
        if self._unit != unit:
            if self._unit is not None or unit == "iterations":
                self.external._describe({"step_unit": unit})
                self.external.counts_iterations = unit == "iterations"
            self._unit = unit

    def _log(self, row: Mapping[Any, Any]) -> None:
        steps = self._steps_of(row)
        numbers = {}
        for name, value in row.items():
            kind = type(value)  # what an object says of itself may raise
            if issubclass(kind, (list, tuple)) and value and self._is_media(value[0]):
                for item in value:
                    self._medium(name, item, steps)
            elif self._is_media(value):
                self._medium(name, value, steps)
            elif (known := _media_of(value)) is not None:
                self.external.log({as_text(name): known}, agent_steps=steps)
            elif kind.__module__.partition(".")[0] == "wandb":
                self._foreign.not_kept("values of W&B's own types")
            elif issubclass(kind, str) and as_number(value).value is None:
                self.external.text(as_text(name), value, agent_steps=steps)
            else:
                numbers[name] = value
        if numbers:
            self.external.log(numbers, agent_steps=steps)
            self._summary.set_last(numbers)

    def _steps_of(self, row: Mapping[Any, Any]) -> Any:
        """The steps of a row. Sets what the run's steps count as soon as that is known."""
        if self._unit != "iterations" or self._is_automatic:
            given = {name for name in self.axes.candidates if as_steps(row.get(name)).value is not None}
            self._logged |= given
            axis = self.axes.of_rows(self._logged)
            for sentence in self.axes.said:
                self._foreign.say(f"define_metric({sentence})", sentence)
            if axis is not None and axis.metric in given:
                self._axis_steps = row[axis.metric]
                self.set_unit(axis.unit)
            elif self._unit is None:
                self.set_unit("iterations")
        if self.has_writer and self._axis_steps is None:
            return self.external.agent_steps
        return self.step if self._axis_steps is None else self._axis_steps

    @staticmethod
    def _is_media(value: Any) -> bool:
        return issubclass(type(value), (WandbVideo, NotKept)) or _media_of(value) is not None

    def _medium(self, name: Any, value: Any, steps: Any) -> None:
        kind = type(value)
        if (known := _media_of(value)) is not None:
            self.external.log({as_text(name): known}, agent_steps=steps)
            return
        if issubclass(kind, WandbVideo):
            self._video(value, steps)
        else:
            self._foreign.not_kept(getattr(kind, "kind", "values"), kind.__name__)

    def _video(self, video: WandbVideo, steps: Any) -> None:
        try:
            self.external.video(video.frames(), agent_steps=steps, fps=video.fps)
            if video.caption:
                self.external.text("video", video.caption, agent_steps=steps)
        except Exception as error:  # of any object
            pass_on(error)
            warn("callboard: a video is not kept: %s", as_text(error))
            self._foreign.not_kept("videos")


_MAX_SHORT = 32
"""An array of more numbers is logged as a histogram, as W&B does."""


def _media_of(value: Any) -> Any:
    """A histogram, image or table as Callboard logs it; None if the value is none of them."""
    if issubclass(type(value), Media):
        return value
    try:
        kind = type(value)  # what an object says of itself may raise
        if hasattr(kind, "savefig"):
            return Image(value)
        if hasattr(kind, "dtype") and hasattr(kind, "shape") and math.prod(value.shape) > _MAX_SHORT:
            return Histogram(value)
    except Exception as error:  # of any object
        pass_on(error)
    return None
