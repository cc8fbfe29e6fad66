"""The tables. Importing this package registers those of every module with `Base.metadata`.

A module has one table or the few that belong together, however short it is.
"""

from importlib import import_module
from pkgutil import iter_modules

from backend.db.alert import Alert, AlertRule, AlertRuleTarget, AlertSignal, AlertTarget, Delivery
from backend.db.audit import AuditEntry
from backend.db.base import Base
from backend.db.branch import Branch
from backend.db.checkpoint import Checkpoint
from backend.db.episode import Episode
from backend.db.evaluation import Evaluation
from backend.db.experiment import Experiment, ExperimentCell
from backend.db.exported_agent import StoredAgent
from backend.db.host import Host
from backend.db.idempotency import IdempotencyKey
from backend.db.job import Job
from backend.db.live_settings import LiveSettings
from backend.db.log_line import LogLine, Transition
from backend.db.media import Media
from backend.db.play import PlaySession, Recording, RecordingPart
from backend.db.run import Attempt, DeletedRun, ExternalSource, Run, ScriptProcess
from backend.db.saliency import StoredSaliency
from backend.db.series import Series, SeriesChunk
from backend.db.share import Share
from backend.db.start_set import StartSet
from backend.db.step_note import StepNote
from backend.db.storage import CleanUp, RemovedFile, RetentionSettings
from backend.db.user import LoginLimit, LoginLink, LoginSession, Token, User
from backend.db.video import Video
from backend.db.view import View, ViewState

_WITHOUT_TABLES = ("migrate",)
"""Not imported: it loads Alembic, which few processes need."""

for _module in iter_modules(__path__, f"{__name__}."):
    if _module.name.rpartition(".")[2] not in _WITHOUT_TABLES:
        import_module(_module.name)

__all__ = [
    "Alert",
    "AlertRule",
    "AlertRuleTarget",
    "AlertSignal",
    "AlertTarget",
    "Attempt",
    "AuditEntry",
    "Base",
    "Branch",
    "Checkpoint",
    "CleanUp",
    "DeletedRun",
    "Delivery",
    "Episode",
    "Evaluation",
    "Experiment",
    "ExperimentCell",
    "ExternalSource",
    "Host",
    "IdempotencyKey",
    "Job",
    "LiveSettings",
    "LogLine",
    "LoginLimit",
    "LoginLink",
    "LoginSession",
    "Media",
    "PlaySession",
    "Recording",
    "RecordingPart",
    "RemovedFile",
    "RetentionSettings",
    "Run",
    "ScriptProcess",
    "Series",
    "SeriesChunk",
    "Share",
    "StartSet",
    "StepNote",
    "StoredAgent",
    "StoredSaliency",
    "Token",
    "Transition",
    "User",
    "Video",
    "View",
    "ViewState",
]
