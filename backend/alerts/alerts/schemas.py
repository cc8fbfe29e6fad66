"""Bodies of alerts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from pydantic import ConfigDict, Field

from backend.db import Alert, Delivery
from backend.db.alert import AlertLevel, DeliveryState
from backend.platform.schemas import Id, Page
from backend.specs.fields import Schema, Strict


class AlertChange(Strict):
    """The body of `PATCH /alerts/{id}`."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"read": True}]})

    read: bool
    """Whether it has been read."""


class DeliveryOut(Schema):
    """An alert's way to a target."""

    target_id: Id
    """Id of the target."""
    target: str = Field(examples=["lab"])
    """Name of the target."""
    state: DeliveryState
    """`pending`, `delivered`, or `failed` after 8 tries."""
    tries: int = Field(examples=[1])
    """Number of tries so far."""
    error: str | None
    """Why the latest try failed; null if it did not."""


class AlertOut(Schema):
    """An alert in your inbox."""

    model_config = ConfigDict(from_attributes=True)

    id: Id
    """Id of the alert, which targets get with it."""
    created_at: datetime
    """When it was raised."""
    kind: str = Field(examples=["failed"])
    """What it is about, as in a rule; or `limit`: its rule raises no more today; or `trial` of a target."""
    level: AlertLevel
    """Severity."""
    title: str = Field(examples=["PAAC on Pong: failed"])
    """One line, as plain text."""
    text: str = Field(examples=["engine killed (SIGKILL, possibly out of memory)"])
    """More, as plain text; may be empty."""
    rule_id: str | None
    """Id of its rule; null for a script's alert without a rule, and if the rule has been deleted."""
    subject_id: str
    """Id of the run, host, sweep or study; empty for other kinds."""
    run_id: str | None = None
    """The same if it is a run that still exists."""
    run_name: str | None = None
    """Name of that run."""
    attempt: int
    """The run's attempt; 0 for what has none."""
    agent_steps: int | None
    """The run's agent steps, or iterations; null for what has none."""
    metric: str | None
    """The metric that it is about, if any."""
    read_at: datetime | None
    """When it was read; null: unread."""
    deliveries: list[DeliveryOut] = Field(default=[])
    """Its ways to targets."""

    @classmethod
    def of(cls, alert: Alert, run_name: str | None, deliveries: Sequence[tuple[Delivery, str]]) -> Self:
        """From its rows; each delivery with the name of its target."""
        ways = [
            DeliveryOut(
                target_id=row.target_id, target=name, state=row.state, tries=row.tries, error=row.error
            )
            for row, name in deliveries
        ]
        run = {} if run_name is None else {"run_id": alert.subject_id, "run_name": run_name}
        return cls.model_validate(alert).model_copy(update={"deliveries": ways, **run})


class AlertPage(Page):
    """A page of alerts."""

    items: list[AlertOut]
    """Alerts of this page."""
    unread: int
    """Number of all your unread alerts."""
