"""What differs between sweeps and studies: `sweep` and `study` declare a `Kind` each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from backend.db import Experiment, ExperimentCell
from backend.experiments.cells.planning import Limits
from backend.experiments.cells.rows import CellRow, NewCell
from backend.runs.runs.grid import AnySpec

Stored = dict[str, Any]
"""A specification as it is stored."""
Planned = tuple[Stored, Sequence[NewCell]]
"""A specification and the cells that are new with it."""


@dataclass(frozen=True)
class Kind:
    """A kind of experiments, whose specifications are `SweepSpec`s or `StudySpec`s."""

    extensible: tuple[str, ...]
    """What of it can be extended."""
    reuses_runs: bool
    """Whether runs that exist fill its cells. They may belong to others."""
    eliminates: bool
    """Whether an arm without a score, one that is worse than another, or one of whose runs cannot start, gets
    no further run."""
    parse: Callable[[Stored], Any]
    """The specification."""
    limits: Callable[[Any], Limits]
    """What bounds the runs of a specification."""
    run_spec: Callable[[Any, Stored, ExperimentCell], AnySpec]
    """The specification of a cell's run. Raises InvalidSpec."""
    prepare: Callable[[Session, Any], Planned]
    """Validate a new experiment. Raises Invalid with one problem per field."""
    extend: Callable[[Session, Experiment, Sequence[CellRow], Mapping[str, Any]], Planned]
    """Validate an extension, given the cells so far. Raises Invalid with one problem per field."""
