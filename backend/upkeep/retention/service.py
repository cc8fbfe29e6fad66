"""Retention: its settings, and the passes of clean-up that apply them to all runs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from time import monotonic
from typing import Any, TypeVar

from pydantic import ValidationError
from sqlalchemy.orm import Session

from backend.db import RetentionSettings
from backend.db.clock import database_now
from backend.fleet.storage import repository as storage_rows
from backend.fleet.storage import service as storage
from backend.platform.artifacts import observations_file, states_file, thumbnail_file
from backend.platform.errors import NotFound
from backend.runs.checkpoints import repository as checkpoints
from backend.runs.runs import service as runs
from backend.specs.problems import quoted
from backend.upkeep.retention import removals, repository
from backend.upkeep.retention.policy import (
    RESUMABLE,
    InstallationPolicy,
    RetentionPolicy,
    checkpoint_to_score_again,
)
from backend.upkeep.retention.removals import DueLog, Policies, Removal, awaited_checkpoints

P = TypeVar("P", bound=RetentionPolicy)

INSTALLATION = "installation"
_GROUP = "group:"

MAX_ROWS = 2_000
"""Maximum number of log lines or audit entries that one transaction deletes."""

PREVIEW_S = 2.0
"""How long a preview checks runs."""
_PREVIEW_RUNS = 200

_OF_THUMBNAIL = ("thumbnail_sha256", "thumbnail_bytes")
_OF_VIDEO = (
    "video",
    "video_sha256",
    "observations_sha256",
    "states_sha256",
    "video_bytes",
    "video_rendered_at",
)


def policies(session: Session) -> Policies:
    """All settings; the defaults, by which nothing is removed, where none are stored or they are damaged."""
    rows = repository.settings_by_scope(session)
    return Policies(
        _policy(InstallationPolicy, rows.pop(INSTALLATION, {})),
        {
            scope.removeprefix(_GROUP): _policy(RetentionPolicy, settings)
            for scope, settings in sorted(rows.items())
        },
    )


def _policy(form: type[P], settings: Mapping[str, Any]) -> P:
    try:
        return form.model_validate(settings)
    except ValidationError:
        return form()


def set_policy(session: Session, group: str | None, policy: RetentionPolicy, changed_by: str) -> None:
    """Store the settings of a group; None: of the installation. A pass starts now and applies them."""
    row = RetentionSettings(
        scope=INSTALLATION if group is None else _GROUP + group,
        settings=policy.model_dump(mode="json"),
        changed_at=database_now(session),
        changed_by=changed_by,
    )
    repository.store_settings(session, row)
    start_pass(session)


def forget_group(session: Session, group: str) -> None:
    """Delete the settings of a group; those of the installation apply to it again, from the next pass on.

    Raises:
        NotFound: the group has no retention settings.
    """
    if not repository.delete_settings(session, _GROUP + group):
        raise NotFound(f"the group {quoted(group)} has no retention settings")


def count_runs(session: Session, group: str | None) -> int:
    """Number of runs that a policy applies to: a group's, or with None the installation's."""
    return repository.count_runs(session, group, _other_groups(session, group))


def preview(
    session: Session, group: str | None, policy: InstallationPolicy, limit_s: float = PREVIEW_S
) -> Iterator[Removal]:
    """What clean-up would remove with these settings: one Removal, which may be empty, for each run checked
    within the time limit.

    Args:
        session: any session.
        group: the group of the settings; None: the installation's.
        policy: the settings.
        limit_s: seconds.
    """
    stored, others = policies(session), _other_groups(session, group)
    if group is None:
        tried = Policies(policy, stored.groups)
    else:
        tried = Policies(stored.installation, {group: policy})
    deadline, after = monotonic() + limit_s, ""
    while monotonic() < deadline:
        run_ids = repository.run_ids_of(session, group, others, after, _PREVIEW_RUNS)
        for removal in removals.of_runs(session, run_ids, tried):
            yield removal
            if monotonic() >= deadline:
                return
        if len(run_ids) < _PREVIEW_RUNS:
            return
        after = run_ids[-1]


def _other_groups(session: Session, group: str | None) -> list[str]:
    """The groups that settings of the installation do not apply to."""
    return [*policies(session).groups] if group is None else []


def take_runs(session: Session, interval_s: float, limit: int) -> Sequence[str]:
    """The next runs of the pass, for one worker; none while the next pass is not due.

    A pass starts `interval_s` after the start of the last one. A worker that dies with its runs leaves them
    to the next pass.
    """
    state = storage_rows.lock_clean_up(session)
    now = database_now(session)
    if state.after_run_id is None:
        if state.pass_started_at is not None and state.pass_started_at + timedelta(seconds=interval_s) > now:
            return []
        state.pass_started_at, state.after_run_id = now, ""
    run_ids = repository.next_run_ids(session, state.after_run_id, limit)
    state.after_run_id = run_ids[-1] if len(run_ids) == limit else None
    return run_ids


def start_pass(session: Session) -> None:
    """Start a pass over all runs now."""
    state = storage_rows.lock_clean_up(session)
    state.pass_started_at, state.after_run_id = database_now(session), ""


def plan(session: Session, run_id: str, policies: Policies) -> Removal | None:
    """What the run's policy removes; None if there is no such run. Reads only."""
    return next(removals.of_runs(session, [run_id], policies), None)


def apply(session: Session, run_id: str, policies: Policies) -> Removal | None:
    """Remove what the run's policy removes from the database. Its event logs are left to their hosts, files
    to the clean-up a quarter of an hour later.

    The run is locked, so that no request evaluates a checkpoint and no worker claims the run meanwhile.

    Returns:
        What was removed; None if there is no such run. At most `MAX_ROWS` log lines are deleted:
        `old_log_lines` is whether there may be more, and then `apply` is to be called again.
    """
    run = runs.find(session, run_id, for_update=True)
    if run is None:
        return None
    removal = next(removals.of_runs(session, [run_id], policies))
    if removal.is_empty():
        return removal
    parts = set()
    if removal.checkpoints:
        parts.add("checkpoints")
        repository.mark_checkpoints_removed(session, [row.id for row in removal.checkpoints])
        storage.release_files(session, run_id, "checkpoints", [row.file for row in removal.checkpoints])
    if removal.episodes or removal.videos:
        parts.add("episodes")
        repository.update_episodes(session, removal.episodes, {"removed": True})
        storage.release_files(session, run_id, "replays", [row.replay for row in removal.episodes])
        rendered = [row for row in (*removal.episodes, *removal.videos) if row.video is not None]
        repository.update_episodes(session, rendered, dict.fromkeys(_OF_VIDEO))
        for row in rendered:
            files = [row.video or "", observations_file(row.id), states_file(row.id)]
            storage.release_files(session, run_id, "videos", files)
        with_thumbnail = [row for row in removal.episodes if row.thumbnail_bytes is not None]
        repository.update_episodes(session, with_thumbnail, dict.fromkeys(_OF_THUMBNAIL))
        storage.release_files(session, run_id, "videos", [thumbnail_file(row.id) for row in with_thumbnail])
    if removal.uploaded_videos:
        parts.add("videos")
        for video in removal.uploaded_videos:
            thumbnail = None if video.thumbnail_bytes is None else thumbnail_file(video.id)
            stored = [name for name in (video.video, video.sent, thumbnail) if name is not None]
            storage.release_files(session, run_id, "videos", stored)
            repository.delete_uploaded_video(session, video)
    if removal.old_log_lines:
        parts.add("log")
        old = removals.old_lines(session, run_id, policies.of(run.group), limit=MAX_ROWS)
        repository.delete_lines(session, old)
        removal.old_log_lines = len(old) == MAX_ROWS
    runs.touch(session, run, parts)
    return removal


def remove_thinned_checkpoints(session: Session, run_id: str, files: Collection[str]) -> None:
    """Record that the engine of a locked run keeps these checkpoints no longer. A checkpoint that a requested
    evaluation, branch or saliency map awaits stays."""
    session.flush()
    awaited = awaited_checkpoints(session, run_id)
    thinned = [file for file in files if file not in awaited]
    storage.release_files(session, run_id, "checkpoints", thinned)
    checkpoints.mark_removed(session, run_id, thinned)


def needed_by_engine(session: Session, run_id: str, n_newest: int = RESUMABLE) -> list[str]:
    """File names of the checkpoints that an engine of the run may read: the newest ones, and the one that it
    scores again when it finishes."""
    live = [row for row in repository.checkpoints(session, run_id) if not row.superseded]
    again = checkpoint_to_score_again(live)
    return [row.file for row in (*live[:n_newest], *([] if again is None else [again]))]


def due_event_logs(session: Session, run_ids: Sequence[str], *, now_due: bool = False) -> list[DueLog]:
    """The event logs of these runs that the hosts compress or remove.

    With `now_due`, however new they are.
    """
    return removals.due_event_logs(session, run_ids, policies(session), now_due=now_due)


def record_log_size(session: Session, run_id: str, attempt: int, log_bytes: int) -> None:
    """Record the size of a compressed event log, or 0 for a removed one."""
    repository.set_log_bytes(session, run_id, attempt, log_bytes)


def remove_audit_entries(session: Session, days: int) -> bool:
    """Delete the oldest entries of the audit trail that are older than `days`; return whether there may be
    more."""
    before = database_now(session) - timedelta(days=days)
    return repository.delete_audit_entries(session, before, MAX_ROWS) == MAX_ROWS


def count_audit_entries(session: Session, policy: InstallationPolicy) -> int:
    """Number of entries of the audit trail that a policy removes."""
    if policy.audit_days is None:
        return 0
    return repository.count_audit_entries(session, database_now(session) - timedelta(days=policy.audit_days))
