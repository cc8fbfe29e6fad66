"""Retention in the database: settings, what they remove of a run, and the pass of clean-up over all runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from backend.db import Attempt, AuditEntry, Checkpoint, Episode, Job, LogLine, RetentionSettings, Run, Video
from backend.db.clock import database_now
from backend.episodes.repository import observations_file
from backend.evaluations.repository import awaited_checkpoints
from backend.jobs.repository import ENCODE
from backend.retention import stored
from backend.retention.stored import EpisodeFiles
from backend.runs import repository as runs
from backend.specs.retention import (
    InstallationPolicy,
    RetentionPolicy,
    StoredCheckpoint,
    removable_checkpoints,
    removable_episodes,
    scored_again,
)
from backend.specs.states import ENDED
from backend.storage import repository as storage

INSTALLATION = "installation"
_GROUP = "group:"

MAX_ROWS = 2_000
"""Maximum number of log lines or audit entries that one transaction deletes."""

_OF_VIDEO = ("video", "video_sha256", "observations_sha256", "video_bytes", "video_rendered_at")


@dataclass(frozen=True)
class Policies:
    """The settings of the installation and of each group that has some."""

    installation: InstallationPolicy
    groups: Mapping[str, RetentionPolicy]

    def of(self, group: str | None) -> RetentionPolicy:
        """The policy of the runs of a group; None: of runs without one."""
        return self.groups.get(group, self.installation) if group is not None else self.installation


@dataclass
class Removal:
    """What a policy removes of a run."""

    run_id: str
    checkpoints: list[StoredCheckpoint] = field(default_factory=list)
    episodes: list[EpisodeFiles] = field(default_factory=list)
    videos: list[EpisodeFiles] = field(default_factory=list)
    """Videos of other episodes."""
    uploaded_videos: list[Video] = field(default_factory=list)
    """Videos that the run's script has uploaded."""
    old_log_lines: bool = False
    event_logs: list[Attempt] = field(default_factory=list)
    """Attempts whose logs the hosts compress or remove; `apply` does not."""

    def is_empty(self) -> bool:
        """Whether `apply` has nothing to do."""
        return not (
            self.checkpoints or self.episodes or self.videos or self.uploaded_videos or self.old_log_lines
        )


def policies(session: Session) -> Policies:
    """All settings; the defaults where none are stored."""
    rows = {row.scope: row.settings for row in session.scalars(select(RetentionSettings))}
    return Policies(
        InstallationPolicy.model_validate(rows.pop(INSTALLATION, {})),
        {
            scope.removeprefix(_GROUP): RetentionPolicy.model_validate(settings)
            for scope, settings in sorted(rows.items())
        },
    )


def set_policy(session: Session, group: str | None, policy: RetentionPolicy, changed_by: str) -> None:
    """Store the settings of a group; None: of the installation. The next pass applies them."""
    scope = INSTALLATION if group is None else _GROUP + group
    session.merge(
        RetentionSettings(
            scope=scope,
            settings=policy.model_dump(mode="json"),
            changed_at=database_now(session),
            changed_by=changed_by,
        )
    )
    session.flush()
    start_pass(session)


def forget_group(session: Session, group: str) -> bool:
    """Delete the settings of a group: those of the installation apply to it. False if it had none."""
    row = session.get(RetentionSettings, _GROUP + group)
    if row is None:
        return False
    session.delete(row)
    session.flush()
    return True


def removals(session: Session, run_ids: Sequence[str], policies: Policies) -> Iterator[Removal]:
    """What the policies remove of each of these runs that exists; each is read as it is yielded."""
    found = session.execute(select(Run.id, Run.group, Run.state).where(Run.id.in_(run_ids))).all()
    now = database_now(session)
    for run in found:
        policy, removal = policies.of(run.group), Removal(run.id)
        if policy.thins_checkpoints and (checkpoints := stored.checkpoints(session, run.id)):
            removal.checkpoints = removable_checkpoints(
                policy, checkpoints, ended=run.state in ENDED, awaited=awaited_checkpoints(session, run.id)
            )
        if policy.thins_episodes or policy.videos_days is not None:
            _add_episodes(session, policy, now, removal)
        if policy.videos_days is not None:
            removal.uploaded_videos = stored.uploaded_videos(
                session, run.id, now - timedelta(days=policy.videos_days)
            )
        if policy.log_lines_days is not None:
            removal.old_log_lines = bool(stored.old_lines(session, run.id, policy.log_lines_days, limit=1))
        removal.event_logs = _due_event_logs(session, {run.id: policy}, now)
        yield removal


def _add_episodes(session: Session, policy: RetentionPolicy, now: datetime, removal: Removal) -> None:
    rows = stored.episodes(session, removal.run_id)
    removed_ids = set(removable_episodes(policy, rows, awaited=stored.rendering(session, removal.run_id)))
    removal.episodes = [row for row in rows if row.id in removed_ids]
    if policy.videos_days is not None:
        before = now - timedelta(days=policy.videos_days)
        removal.videos = [
            row for row in rows if row.video and row.id not in removed_ids and row.rendered_at < before
        ]


def due_event_logs(
    session: Session, run_ids: Sequence[str], policies: Policies, *, now_due: bool = False
) -> list[Attempt]:
    """The attempts at these runs whose event logs the hosts compress or remove.

    With `now_due`, those of runs that have just ended too.
    """
    groups = runs.groups_of(session, run_ids)
    of = {run_id: policies.of(group) for run_id, group in groups.items()}
    return _due_event_logs(session, of, database_now(session), now_due=now_due)


def _due_event_logs(
    session: Session, of: Mapping[str, RetentionPolicy], now: datetime, *, now_due: bool = False
) -> list[Attempt]:
    due = []
    for row in stored.event_logs(session, [id for id, policy in of.items() if policy.event_logs != "keep"]):
        policy = of[row.run_id]
        is_old = row.ended_at is not None and row.ended_at + timedelta(days=policy.event_logs_days) < now
        if (now_due or is_old) and (row.log_bytes is None or policy.event_logs == "remove"):
            due.append(row)
    return due


def apply(session: Session, run_id: str, policies: Policies) -> Removal | None:
    """Remove what the run's policy removes; its event logs are left to their hosts.

    The run is locked, so that no request evaluates a checkpoint and no worker claims the run meanwhile.

    Returns:
        What was removed, of many log lines only the first; None if there is no such run.
    """
    run = runs.get(session, run_id, for_update=True)
    if run is None:
        return None
    removal = next(removals(session, [run_id], policies))
    if removal.is_empty():
        return removal
    parts = set()
    if removal.checkpoints:
        parts.add("checkpoints")
        removed_ids = [checkpoint.id for checkpoint in removal.checkpoints]
        session.execute(update(Checkpoint).where(Checkpoint.id.in_(removed_ids)).values(removed=True))
        storage.remove_files(session, run_id, "checkpoints", [each.file for each in removal.checkpoints])
    if removal.episodes or removal.videos:
        parts.add("episodes")
        _update_episodes(session, removal.episodes, {"removed": True})
        storage.remove_files(session, run_id, "replays", [each.replay for each in removal.episodes])
        rendered = [each for each in (*removal.episodes, *removal.videos) if each.video is not None]
        _update_episodes(session, rendered, dict.fromkeys(_OF_VIDEO))
        for each in rendered:
            storage.remove_files(session, run_id, "videos", [each.video or "", observations_file(each.id)])
    if removal.uploaded_videos:
        parts.add("videos")
        for video in removal.uploaded_videos:
            storage.remove_files(session, run_id, "videos", filter(None, (video.video, video.sent)))
            session.execute(delete(Job).where(Job.kind == ENCODE, Job.target_id == video.id))
            session.delete(video)
    if removal.old_log_lines:
        parts.add("log")
        days = policies.of(run.group).log_lines_days
        assert days is not None
        old = stored.old_lines(session, run_id, days, limit=MAX_ROWS)
        session.execute(delete(LogLine).where(LogLine.id.in_(old)))
        removal.old_log_lines = len(old) == MAX_ROWS
    runs.touch(session, run, parts)
    return removal


def _update_episodes(session: Session, episodes: Sequence[EpisodeFiles], values: dict[str, Any]) -> None:
    for at in range(0, len(episodes), MAX_ROWS):
        ids = [each.id for each in episodes[at : at + MAX_ROWS]]
        session.execute(update(Episode).where(Episode.id.in_(ids)).values(**values))


def remove_audit_entries(session: Session, days: int) -> int:
    """Delete the oldest entries of the audit trail that are older than `days`; return their number."""
    before = database_now(session) - timedelta(days=days)
    old = select(AuditEntry.id).where(AuditEntry.time < before).order_by(AuditEntry.id).limit(MAX_ROWS)
    found = session.scalars(old).all()
    session.execute(delete(AuditEntry).where(AuditEntry.id.in_(found)))
    return len(found)


def count_audit_entries(session: Session, days: int) -> int:
    """Number of entries of the audit trail that are older than `days`."""
    before = database_now(session) - timedelta(days=days)
    return session.scalars(select(func.count()).select_from(AuditEntry).where(AuditEntry.time < before)).one()


def run_ids(session: Session, after: str, limit: int) -> Sequence[str]:
    """Ids of the next runs, in order."""
    return session.scalars(select(Run.id).where(Run.id > after).order_by(Run.id).limit(limit)).all()


def take_runs(session: Session, interval_s: float, limit: int) -> Sequence[str]:
    """The next runs of the pass, for one worker; none while it is not due.

    A pass starts `interval_s` after the start of the last one. A worker that dies with its runs leaves them
    to the next pass.
    """
    state = storage.lock_clean_up(session)
    now = database_now(session)
    if state.after_run_id is None:
        if state.pass_started_at is not None and state.pass_started_at + timedelta(seconds=interval_s) > now:
            return []
        state.pass_started_at, state.after_run_id = now, ""
    found = run_ids(session, state.after_run_id, limit)
    state.after_run_id = found[-1] if len(found) == limit else None
    return found


def start_pass(session: Session) -> None:
    """Start a pass over all runs now."""
    state = storage.lock_clean_up(session)
    state.pass_started_at, state.after_run_id = database_now(session), ""


def needed_by_engine(session: Session, run_id: str, newest: int) -> list[str]:
    """File names of the checkpoints that an engine of the run may read: the newest ones, and the one that it
    scores again when it finishes."""
    live = [each for each in stored.checkpoints(session, run_id) if not each.superseded]
    again = scored_again(live)
    return [each.file for each in (*live[:newest], *([] if again is None else [again]))]


def set_log_bytes(session: Session, run_id: str, attempt: int, log_bytes: int) -> None:
    """Record the size of a compressed event log, or 0 for a removed one."""
    session.execute(
        update(Attempt).where(Attempt.run_id == run_id, Attempt.number == attempt).values(log_bytes=log_bytes)
    )
