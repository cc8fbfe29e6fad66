"""Request and response bodies of retention."""

from pydantic import BaseModel, ConfigDict, Field

from backend.schemas import Page
from backend.specs.fields import Strict
from backend.specs.retention import InstallationPolicy, RetentionPolicy
from backend.specs.run_fields import MAX_GROUP
from backend.text import Text


class GroupPolicy(Strict):
    """The retention settings of a group, which replace those of the installation for its runs."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"group": "ablation", "policy": {"checkpoints_last": 5}}]}
    )

    group: Text = Field(min_length=1, max_length=MAX_GROUP, description="Name of the group.")
    policy: RetentionPolicy = Field(description="Its settings.")


class GroupPolicyOut(BaseModel):
    """The retention settings of a group."""

    group: str
    """Name of the group."""
    policy: RetentionPolicy
    """Its settings."""


class RetentionOut(BaseModel):
    """All retention settings."""

    installation: InstallationPolicy
    """The settings of runs whose group has no settings."""
    groups: list[GroupPolicyOut]
    """The groups that have settings, by name."""


class PreviewRequest(Strict):
    """Retention settings to try."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"policy": {"checkpoints_last": 5}}]})

    group: Text | None = Field(
        default=None,
        max_length=MAX_GROUP,
        description="Group to which the settings apply; null for the installation.",
    )
    policy: InstallationPolicy = Field(description="The settings.")


class Amount(BaseModel):
    """A number of files, and their size."""

    files: int = 0
    """Number of files."""
    n_bytes: int = 0
    """Their size in bytes."""

    def add(self, n_bytes: int) -> None:
        """Count one more file."""
        self.files += 1
        self.n_bytes += n_bytes


class Preview(BaseModel):
    """What clean-up would remove with these settings."""

    runs_checked: int
    """Runs that were checked within the time limit, the oldest first."""
    runs_total: int
    """Runs that the settings apply to."""
    checkpoints: Amount
    """Checkpoints."""
    episodes: Amount
    """Replays; videos of the same episodes are under `videos`."""
    videos: Amount
    """Videos."""
    event_logs: Amount
    """Event logs to compress or remove, with their current size."""
    runs_with_old_log_lines: int
    """Runs whose log has lines to remove."""
    audit_entries: int
    """Entries of the audit trail to remove."""


class StorageKind(BaseModel):
    """The artifacts or event logs of all runs."""

    kind: str
    """`checkpoints`, `replays`, `videos` or `event_logs`."""
    files: int
    """Number of files."""
    n_bytes: int
    """Their size in bytes."""


class StorageOut(BaseModel):
    """Disk usage."""

    kinds: list[StorageKind]
    """The files of all runs, by kind."""
    database_bytes: int
    """Size of the database."""
    removed_files: int
    """Files that clean-up will delete."""


class RunStorage(BaseModel):
    """Disk usage of a run."""

    run_id: str
    name: str
    group: str | None
    state: str
    checkpoints: int
    """Bytes of its checkpoints."""
    replays: int
    """Bytes of its replays."""
    videos: int
    """Bytes of its videos."""
    event_logs: int
    """Bytes of its event logs on all hosts."""
    total: int
    """Bytes of all of these."""


class RunStoragePage(Page[RunStorage]):
    """The runs that take the most space."""
