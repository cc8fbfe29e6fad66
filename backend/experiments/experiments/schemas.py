"""Request bodies that sweeps and studies share."""

from pydantic import Field

from backend.experiments.specs.sweep import MAX_CONCURRENCY
from backend.specs.fields import Strict
from backend.specs.run_fields import ChosenName, GivenName, Notes


class ExperimentExpectation(Strict):
    """What the sender of a change has read: fields that are left out may have any value."""

    name: GivenName | None = None
    """Name before the change."""
    notes: Notes | None = None
    """Notes before the change."""
    concurrency: int | None = None
    """Runs that may be queued or running at the same time, before the change."""


class ExperimentChanges(Strict):
    """The body of `PATCH /sweeps/{id}` and `PATCH /studies/{id}`: fields that are left out do not change."""

    expected: ExperimentExpectation | None = None
    """Values before the change, as they were read: if one has been changed meanwhile, the answer is 409 with
    the code `changed_meanwhile`, and nothing changes. Without it, the last change wins."""
    name: ChosenName | None = None
    """New name; null changes nothing. The group of the runs keeps its name."""
    notes: Notes | None = None
    """New notes, in Markdown; null changes nothing."""
    concurrency: int | None = Field(
        default=None,
        ge=1,
        le=MAX_CONCURRENCY,
        description="Runs that may be queued or running at the same time.",
    )
