"""What Callboard cannot do with external runs, which are trained and written elsewhere."""

from typing import Literal

from backend.db import Run
from backend.errors import Conflict
from backend.specs.external import REFUSALS
from backend.specs.run import RunSpec, parse_run_spec
from backend.specs.run_fields import EXTERNAL

HEARTBEAT_S = 60.0
"""Time without a request of its script after which an external run is lost."""


def trainable_spec(run: Run, action: Literal["fork", "evaluate", "change the settings of"]) -> RunSpec:
    """The specification of a run of Callboard's own.

    Raises:
        Conflict: the run is an external one, which Callboard cannot do this with.
    """
    refuse(run, action)
    return parse_run_spec(run.spec)


def refuse(run: Run, action: str) -> None:
    """Refuse an action that external runs do not have.

    Raises:
        Conflict: the run is an external one.
    """
    if run.origin == EXTERNAL:
        raise Conflict(f"the run is trained elsewhere: {REFUSALS[action]}")
