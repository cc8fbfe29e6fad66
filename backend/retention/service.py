"""Retention settings, what they would remove, and what takes space."""

from time import monotonic

from sqlalchemy.orm import Session

from backend.errors import NotFound
from backend.retention import repository, usage
from backend.retention.repository import Policies, Removal
from backend.retention.schemas import (
    Amount,
    GroupPolicyOut,
    Preview,
    PreviewRequest,
    RetentionOut,
    RunStorage,
    StorageKind,
    StorageOut,
)
from backend.specs.problems import quoted

PREVIEW_S = 2.0
"""How long a preview checks runs."""
_RUNS = 200


def settings(session: Session) -> RetentionOut:
    """All retention settings."""
    found = repository.policies(session)
    groups = [GroupPolicyOut(group=group, policy=policy) for group, policy in found.groups.items()]
    return RetentionOut(installation=found.installation, groups=groups)


def forget_group(session: Session, group: str) -> None:
    """Delete the settings of a group; those of the installation apply to it again.

    Raises:
        NotFound: the group has no retention settings.
    """
    if not repository.forget_group(session, group):
        raise NotFound(f"the group {quoted(group)} has no retention settings")


def preview(session: Session, request: PreviewRequest, limit_s: float = PREVIEW_S) -> Preview:
    """What clean-up would remove with these settings, of the runs that can be checked in the time limit."""
    stored = repository.policies(session)
    if request.group is None:
        policies = Policies(request.policy, stored.groups)
        others = list(stored.groups)
    else:
        policies = Policies(stored.installation, {request.group: request.policy})
        others = []
    answer = Preview(
        runs_checked=0,
        runs_total=usage.count_runs(session, request.group, others),
        checkpoints=Amount(),
        episodes=Amount(),
        videos=Amount(),
        event_logs=Amount(),
        runs_with_old_log_lines=0,
        audit_entries=0,
    )
    if request.group is None and request.policy.audit_days is not None:
        answer.audit_entries = repository.count_audit_entries(session, request.policy.audit_days)
    deadline, after = monotonic() + limit_s, ""
    while monotonic() < deadline:
        run_ids = usage.run_ids(session, request.group, others, after, _RUNS)
        for removal in repository.removals(session, run_ids, policies):
            _add_removal(answer, removal)
            answer.runs_checked += 1
            if monotonic() >= deadline:
                return answer
        if len(run_ids) < _RUNS:
            break
        after = run_ids[-1]
    return answer


def _add_removal(answer: Preview, removal: Removal) -> None:
    for checkpoint in removal.checkpoints:
        _add(answer.checkpoints, checkpoint.size_bytes)
    for episode in removal.episodes:
        _add(answer.episodes, episode.replay_bytes or 0)
    for episode in (*removal.episodes, *removal.videos):
        if episode.video is not None:
            _add(answer.videos, episode.video_bytes or 0)
    for video in removal.uploaded_videos:
        _add(answer.videos, video.video_bytes + video.sent_bytes)
    for attempt in removal.event_logs:
        size = attempt.log_offset_bytes if attempt.log_bytes is None else attempt.log_bytes
        _add(answer.event_logs, size)
    answer.runs_with_old_log_lines += removal.old_log_lines


def storage(session: Session) -> StorageOut:
    """Disk usage by kind."""
    return StorageOut(
        kinds=[
            StorageKind(kind=kind, files=files, n_bytes=size)
            for kind, (files, size) in usage.by_kind(session).items()
        ],
        database_bytes=usage.database_bytes(session),
        removed_files=usage.count_removed_files(session),
    )


def runs_by_size(session: Session, limit: int) -> list[RunStorage]:
    """The runs that take the most space, the largest first."""
    return [
        RunStorage(
            run_id=run.id, name=run.name, group=run.group, state=run.state, total=sum(sizes.values()), **sizes
        )
        for run, sizes in usage.by_run(session, limit)
    ]


def _add(amount: Amount, n_bytes: int) -> None:
    amount.files += 1
    amount.n_bytes += n_bytes
