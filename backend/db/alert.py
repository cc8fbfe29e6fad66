"""Tables `alert_rules`, `alert_targets`, `alert_rule_targets`, `alert_signals`, `alerts`, `deliveries`."""

from datetime import datetime
from typing import Literal

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, String, Text, UniqueConstraint, insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from backend.db.base import Base, storable
from backend.db.clock import database_now
from backend.specs.run_fields import MAX_GROUP, MAX_NAME, MAX_PROJECT

AlertKind = Literal[
    "finished",
    "failed",
    "lost",
    "no_points",
    "metric",
    "score",
    "nan",
    "host_away",
    "disk_filling",
    "sweep_done",
    "study_done",
    "script",
]
"""What a rule can watch for."""
AlertLevel = Literal["info", "warning", "error"]
Comparison = Literal["above", "below"]
DeliveryState = Literal["pending", "delivered", "failed"]

MAX_TITLE = 255
MAX_ALERT_TEXT = 4_096
MAX_METRIC = 200


class AlertTarget(Base):
    """Where alerts are delivered outside of the pages. Only workers read its address."""

    __tablename__ = "alert_targets"

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    name: Mapped[str] = mapped_column(String(MAX_NAME), unique=True)
    kind: Mapped[str] = mapped_column(String(20))
    """`json`, `mail`, `slack` or `discord`."""
    secret_url: Mapped[str] = mapped_column(Text, deferred=True)
    """The address as Apprise reads it, with its secrets."""
    masked_url: Mapped[str] = mapped_column(Text)
    """The same without secrets."""
    created_at: Mapped[datetime]
    created_by: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))


class AlertRule(Base):
    """What a user wants to be alerted of. It applies to what happens after its creation."""

    __tablename__ = "alert_rules"

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    owner_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime]
    kinds: Mapped[list[str]]
    """Of `AlertKind`."""
    run_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), index=True)
    """The only run it is about; None for any."""
    group: Mapped[str | None] = mapped_column(String(MAX_GROUP))
    """The group whose runs it is about; None for any."""
    project: Mapped[str | None] = mapped_column(String(MAX_PROJECT))
    """The project whose runs it is about; None for any."""
    minutes: Mapped[float | None]
    """How long a run has no points, or a metric is above or below `value`."""
    metric: Mapped[str | None] = mapped_column(String(MAX_METRIC))
    comparison: Mapped[Comparison | None] = mapped_column(String(10))
    value: Mapped[float | None]
    score: Mapped[float | None]
    """The score to be reached."""


class AlertRuleTarget(Base):
    """A target to which the alerts of a rule are delivered."""

    __tablename__ = "alert_rule_targets"

    rule_id: Mapped[str] = mapped_column(ForeignKey("alert_rules.id", ondelete="CASCADE"), primary_key=True)
    target_id: Mapped[str] = mapped_column(
        ForeignKey("alert_targets.id", ondelete="CASCADE"), primary_key=True, index=True
    )


class AlertSignal(Base):
    """Something that rules may be about, until a worker has compared it with them.

    It is written in the transaction of what has happened, and deleted in that of its alerts.
    """

    __tablename__ = "alert_signals"

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    time: Mapped[datetime]
    kind: Mapped[str] = mapped_column(String(20))
    """Of `AlertKind`."""
    subject_id: Mapped[str] = mapped_column(String(26), index=True)
    """The run, sweep or study."""
    attempt: Mapped[int] = mapped_column(default=0)
    agent_steps: Mapped[int | None] = mapped_column(BigInteger)
    level: Mapped[AlertLevel] = mapped_column(String(10))
    title: Mapped[str] = mapped_column(String(MAX_TITLE), default="")
    """Of a script's alert."""
    text: Mapped[str] = mapped_column(Text, default="")
    """The reason, or the text of a script's alert."""


class Alert(Base):
    """An alert in the inbox of its user."""

    __tablename__ = "alerts"
    __table_args__ = (
        UniqueConstraint("rule_id", "subject_id", "attempt", "kind", "occurrence"),
        Index(None, "owner_id", "read_at", "id"),
        Index(None, "subject_id"),
    )

    id: Mapped[str] = mapped_column(String(26), primary_key=True)
    """A ULID: sorts by creation time."""
    owner_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    rule_id: Mapped[str | None] = mapped_column(ForeignKey("alert_rules.id", ondelete="SET NULL"))
    """None for a script's alert without a rule, a trial of a target, and once the rule has been deleted."""
    created_at: Mapped[datetime]
    kind: Mapped[str] = mapped_column(String(20))
    """Of `AlertKind`; or `limit`: the rule has no more alerts today; or `trial` of a target."""
    level: Mapped[AlertLevel] = mapped_column(String(10))
    title: Mapped[str] = mapped_column(String(MAX_TITLE))
    text: Mapped[str] = mapped_column(Text)
    subject_id: Mapped[str] = mapped_column(String(200))
    """The run, host, sweep or study, which may have been deleted; of other kinds empty."""
    attempt: Mapped[int]
    """The run's attempt; 0 for what has none."""
    occurrence: Mapped[str] = mapped_column(String(40))
    """Distinguishes alerts of one kind about the same attempt or thing, such as the day; empty where there is
    only one."""
    agent_steps: Mapped[int | None] = mapped_column(BigInteger)
    """The run's agent steps."""
    metric: Mapped[str | None] = mapped_column(String(MAX_METRIC))
    """The metric that it is about."""
    read_at: Mapped[datetime | None]


class Delivery(Base):
    """An alert that is, or is to be, delivered to a target: a row of the outbox."""

    __tablename__ = "deliveries"
    __table_args__ = (Index(None, "state", "due_at"),)

    alert_id: Mapped[str] = mapped_column(ForeignKey("alerts.id", ondelete="CASCADE"), primary_key=True)
    target_id: Mapped[str] = mapped_column(
        ForeignKey("alert_targets.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    state: Mapped[DeliveryState] = mapped_column(String(10), default="pending")
    tries: Mapped[int] = mapped_column(default=0)
    """Number of tries that have begun."""
    due_at: Mapped[datetime]
    """When it is tried next; during a try, the end of the worker's lease."""
    error: Mapped[str | None] = mapped_column(Text)
    """Why the latest try failed."""


def record_signal(
    session: Session,
    kind: AlertKind,
    subject_id: str,
    *,
    attempt: int = 0,
    agent_steps: int | None = None,
    level: AlertLevel = "info",
    title: str = "",
    text: str = "",
) -> None:
    """Record, in the transaction of what has happened, that rules may be about it."""
    row = {"kind": kind, "subject_id": subject_id, "attempt": attempt, "agent_steps": agent_steps}
    row |= {"level": level, "title": storable(title)[:MAX_TITLE], "text": storable(text)[:MAX_ALERT_TEXT]}
    session.execute(insert(AlertSignal), [row | {"time": database_now(session)}])
