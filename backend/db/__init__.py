"""The tables. Importing this package registers all of them with `Base.metadata`."""

from backend.db.attempt import Attempt
from backend.db.audit import AuditEntry
from backend.db.base import Base
from backend.db.checkpoint import Checkpoint
from backend.db.deleted_run import DeletedRun
from backend.db.episode import Episode
from backend.db.evaluation import Evaluation
from backend.db.host import Host
from backend.db.idempotency import IdempotencyKey
from backend.db.job import Job
from backend.db.live_settings import LiveSettings
from backend.db.log_line import LogLine, Transition
from backend.db.run import Run
from backend.db.series import Series, SeriesChunk
from backend.db.user import LoginLink, Session, Token, User

__all__ = [
    "Attempt",
    "AuditEntry",
    "Base",
    "Checkpoint",
    "DeletedRun",
    "Episode",
    "Evaluation",
    "Host",
    "IdempotencyKey",
    "Job",
    "LiveSettings",
    "LogLine",
    "LoginLink",
    "Run",
    "Series",
    "SeriesChunk",
    "Session",
    "Token",
    "Transition",
    "User",
]
