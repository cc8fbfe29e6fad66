"""What retention removes of runs: files and lines, found from settings and rows. Nothing is changed here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from backend.db import Attempt, Video
from backend.db.clock import database_now
from backend.replays.branches import repository as branches
from backend.replays.saliency import repository as saliency
from backend.runs.evaluations import repository as evaluations
from backend.specs.states import RunState
from backend.upkeep.retention import repository
from backend.upkeep.retention.policy import (
    InstallationPolicy,
    RetentionPolicy,
    StoredCheckpoint,
    removable_checkpoints,
    removable_episodes,
)
from backend.upkeep.retention.repository import EpisodeFiles


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
    """Whether there are log lines to delete; in what `apply` returns, whether there may be more."""
    event_logs: list[Attempt] = field(default_factory=list)
    """Attempts whose logs the hosts compress or remove; `apply` does not."""

    def is_empty(self) -> bool:
        """Whether `apply` has nothing to do."""
        return not (
            self.checkpoints or self.episodes or self.videos or self.uploaded_videos or self.old_log_lines
        )


@dataclass(frozen=True)
class DueLog:
    """An event log that its host compresses or removes."""

    attempt: Attempt
    remove: bool


def awaited_checkpoints(session: Session, run_id: str) -> set[str]:
    """File names of a run's checkpoints that requested evaluations, branches, saliency maps and exports of
    agents await."""
    resources = (branches, evaluations, saliency, repository)
    return set().union(*(resource.awaited_checkpoints(session, run_id) for resource in resources))


def of_runs(session: Session, run_ids: Sequence[str], policies: Policies) -> Iterator[Removal]:
    """What the policies remove of each of these runs that exists; each is read as it is yielded."""
    now = database_now(session)
    for run in repository.runs(session, run_ids):
        policy, removal = policies.of(run.group), Removal(run.id)
        if policy.thins_checkpoints and (checkpoints := repository.checkpoints(session, run.id)):
            removal.checkpoints = removable_checkpoints(
                policy,
                checkpoints,
                ended=run.state == RunState.FINISHED,  # the others may be resumed
                awaited=awaited_checkpoints(session, run.id),
            )
        if policy.thins_episodes or policy.videos_days is not None:
            _add_episodes(session, policy, now, removal)
        if policy.videos_days is not None:
            removal.uploaded_videos = repository.uploaded_videos(
                session, run.id, now - timedelta(days=policy.videos_days)
            )
        removal.old_log_lines = bool(old_lines(session, run.id, policy, limit=1))
        removal.event_logs = [log.attempt for log in _due_event_logs(session, {run.id: policy}, now)]
        yield removal


def old_lines(session: Session, run_id: str, policy: RetentionPolicy, *, limit: int) -> Sequence[int]:
    """Ids of the oldest log lines of a run that a policy removes."""
    if policy.log_lines_days is None:
        return []
    before = database_now(session) - timedelta(days=policy.log_lines_days)
    return repository.old_lines(session, run_id, before, limit=limit)


def due_event_logs(
    session: Session, run_ids: Sequence[str], policies: Policies, *, now_due: bool = False
) -> list[DueLog]:
    """The event logs of these runs that the hosts compress or remove.

    With `now_due`, however new they are.
    """
    by_run = {run.id: policies.of(run.group) for run in repository.runs(session, run_ids)}
    return _due_event_logs(session, by_run, database_now(session), now_due=now_due)


def _add_episodes(session: Session, policy: RetentionPolicy, now: datetime, removal: Removal) -> None:
    rows = repository.episodes(session, removal.run_id)
    removed_ids = set(
        removable_episodes(policy, rows, awaited=repository.awaited_episodes(session, removal.run_id))
    )
    removal.episodes = [row for row in rows if row.id in removed_ids]
    if policy.videos_days is not None:
        before = now - timedelta(days=policy.videos_days)
        removal.videos = [
            row for row in rows if row.video and row.id not in removed_ids and row.rendered_at < before
        ]


def _due_event_logs(
    session: Session, by_run: Mapping[str, RetentionPolicy], now: datetime, *, now_due: bool = False
) -> list[DueLog]:
    due = []
    not_kept = [run_id for run_id, policy in by_run.items() if policy.event_logs != "keep"]
    for row in repository.event_logs(session, not_kept):
        policy = by_run[row.run_id]
        is_old = row.ended_at is not None and row.ended_at + timedelta(days=policy.event_logs_days) < now
        if (now_due or is_old) and (row.log_bytes is None or policy.event_logs == "remove"):
            due.append(DueLog(row, remove=policy.event_logs == "remove"))
    return due
