"""An experiment's cells: new ones, and stored rows, which planner, pages and figures read by the thousand."""

from dataclasses import dataclass, field

from backend.experiments.cells.planning import CHANGED
from backend.experiments.cells.sampling import ConfigValues
from backend.specs.run import RunSpec
from backend.specs.states import ENDED, RunState


@dataclass(frozen=True)
class NewCell:
    """A cell before it is stored."""

    arm: int
    environment: str
    draw: int
    seed: int
    settings: ConfigValues
    key: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class PlannedCell(NewCell):
    """A cell of a study, which a run that exists may fill."""

    spec: RunSpec


@dataclass(frozen=True)
class CellRow:
    """A stored cell and its run, without settings."""

    number: int
    arm: int
    environment: str
    draw: int
    started: bool
    reused: bool
    error: str | None
    run_id: str | None
    """None before the start, and if the run has been deleted."""
    state: RunState | None
    score: float | None
    agent_steps: int
    frames: int
    wall_time_s: float
    revision: int
    """Of its run's data, which do not change without it."""
    is_changed: bool
    """Whether its run no longer trains as planned: somebody has resumed it with another limit, or changed its
    settings."""
    is_early: bool
    """Whether its training score is that of the first, short episodes."""

    @property
    def counts(self) -> bool:
        """Whether its run is finished as planned, so that its score counts."""
        return self.run_id is not None and self.state == RunState.FINISHED and not self.is_changed

    @property
    def standing(self) -> str:
        """State of its run, or why it has none that counts."""
        if self.is_changed and self.state in ENDED:
            return CHANGED
        return standing(started=self.started, has_error=self.error is not None, state=self.state)


def standing(*, started: bool, has_error: bool, state: str | None) -> str:
    """The state of a cell's run; `waiting` before the start, `deleted` without the run, `invalid` if none can
    be started."""
    if has_error:
        return "invalid"
    if not started:
        return "waiting"
    return "deleted" if state is None else str(RunState(state))
