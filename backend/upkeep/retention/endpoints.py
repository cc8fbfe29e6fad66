"""Disk usage and retention settings."""

from typing import Annotated

from fastapi import Query

from backend.http.access import Admin, Operator, Viewer
from backend.http.dependencies import ReadSession, WriteSession
from backend.http.routing import ResourceRouter, WritingRoute
from backend.platform.text import Text
from backend.specs.run_fields import MAX_GROUP
from backend.upkeep.retention import repository, service
from backend.upkeep.retention.policy import InstallationPolicy
from backend.upkeep.retention.removals import Policies, Removal
from backend.upkeep.retention.schemas import (
    Amount,
    GroupPolicy,
    GroupPolicyOut,
    Preview,
    PreviewRequest,
    RetentionOut,
    RunStorage,
    RunStoragePage,
    StorageKind,
    StorageOut,
)

router = ResourceRouter(tags=["storage"], route_class=WritingRoute)


@router.get("/storage")
def read_storage(principal: Viewer, session: ReadSession) -> StorageOut:
    """Disk usage by kind."""
    kinds = repository.by_kind(session)
    return StorageOut(
        kinds=[StorageKind(kind=kind, files=n, n_bytes=size) for kind, (n, size) in kinds.items()],
        database_bytes=repository.database_bytes(session),
        removed_files=repository.count_removed_files(session),
    )


@router.get("/storage/runs")
def list_storage_of_runs(
    principal: Viewer,
    session: ReadSession,
    limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of runs.")] = 50,
) -> RunStoragePage:
    """The runs that take the most space, the largest first."""
    items = [
        RunStorage(
            run_id=run.id, name=run.name, group=run.group, state=run.state, total=sum(sizes.values()), **sizes
        )
        for run, sizes in repository.by_run(session, limit)
    ]
    return RunStoragePage(items=items)


@router.get("/retention")
def read_retention(principal: Viewer, session: ReadSession) -> RetentionOut:
    """The retention settings of the installation and of the groups that have some."""
    return _settings(service.policies(session))


@router.put("/retention/installation")
def set_retention(body: InstallationPolicy, principal: Admin, session: WriteSession) -> RetentionOut:
    """Replace the retention settings of the installation; clean-up applies them within minutes."""
    service.set_policy(session, None, body, principal.id)
    return _settings(service.policies(session))


@router.put("/retention/groups")
def set_group_retention(body: GroupPolicy, principal: Operator, session: WriteSession) -> RetentionOut:
    """Replace the retention settings of a group, which apply to its runs instead of the installation's."""
    service.set_policy(session, body.group, body.policy, principal.id)
    return _settings(service.policies(session))


@router.delete("/retention/groups", status_code=204)
def delete_group_retention(
    group: Annotated[Text, Query(max_length=MAX_GROUP, description="Name of the group.")],
    principal: Operator,
    session: WriteSession,
) -> None:
    """Delete the retention settings of a group; those of the installation apply to it again."""
    service.forget_group(session, group)


@router.post("/retention/preview")
def preview_retention(body: PreviewRequest, principal: Operator, session: ReadSession) -> Preview:
    """What clean-up would remove with these settings; nothing is changed."""
    preview = Preview(
        runs_checked=0,
        runs_total=service.count_runs(session, body.group),
        checkpoints=Amount(),
        episodes=Amount(),
        videos=Amount(),
        event_logs=Amount(),
        runs_with_old_log_lines=0,
        audit_entries=service.count_audit_entries(session, body.policy) if body.group is None else 0,
    )
    for removal in service.preview(session, body.group, body.policy):
        _add(preview, removal)
    return preview


def _settings(policies: Policies) -> RetentionOut:
    groups = [GroupPolicyOut(group=group, policy=policy) for group, policy in policies.groups.items()]
    return RetentionOut(installation=policies.installation, groups=groups)


def _add(preview: Preview, removal: Removal) -> None:
    """Add what would be removed of one run."""
    preview.runs_checked += 1
    for checkpoint in removal.checkpoints:
        preview.checkpoints.add(checkpoint.size_bytes)
    for episode in removal.episodes:
        preview.episodes.add((episode.replay_bytes or 0) + (episode.thumbnail_bytes or 0))
    for episode in (*removal.episodes, *removal.videos):
        if episode.video is not None:
            preview.videos.add(episode.video_bytes or 0)
    for video in removal.uploaded_videos:
        preview.videos.add(video.video_bytes + video.sent_bytes + (video.thumbnail_bytes or 0))
    for attempt in removal.event_logs:
        size = attempt.log_offset_bytes if attempt.log_bytes is None else attempt.log_bytes
        preview.event_logs.add(size)
    preview.runs_with_old_log_lines += removal.old_log_lines
