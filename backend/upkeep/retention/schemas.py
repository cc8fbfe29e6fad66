"""Request and response bodies of retention."""

from pydantic import ConfigDict, Field

from backend.platform.schemas import Id, Page
from backend.platform.text import Text
from backend.specs.fields import Schema, Strict
from backend.specs.run_fields import MAX_GROUP
from backend.upkeep.retention.policy import InstallationPolicy, RetentionPolicy


class GroupPolicy(Strict):
    """The retention settings of a group, which replace those of the installation for its runs."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"group": "ablation", "policy": {"checkpoints_last": 5}}]}
    )

    group: Text = Field(min_length=1, max_length=MAX_GROUP, description="Name of the group.")
    policy: RetentionPolicy = Field(description="Retention settings of the group.")


class GroupPolicyOut(Schema):
    """The retention settings of a group."""

    group: str
    """Name of the group."""
    policy: RetentionPolicy
    """Retention settings of the group."""


class RetentionOut(Schema):
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
    policy: InstallationPolicy = Field(description="Retention settings to try.")


class Amount(Schema):
    """A number of files, and their size."""

    files: int = 0
    """Number of files."""
    n_bytes: int = 0
    """Their size in bytes."""

    def add(self, n_bytes: int) -> None:
        """Count one more file."""
        self.files += 1
        self.n_bytes += n_bytes


class Preview(Schema):
    """What clean-up would remove with these settings."""

    runs_checked: int
    """Runs that were checked within the time limit, the oldest first."""
    runs_total: int
    """Runs that the settings apply to."""
    checkpoints: Amount
    """Checkpoints to remove, with their size."""
    episodes: Amount
    """Replays to remove, with their size; videos of the same episodes are under `videos`."""
    videos: Amount
    """Videos to remove, with their size."""
    event_logs: Amount
    """Event logs to compress or remove, with their current size."""
    runs_with_old_log_lines: int
    """Runs whose log has lines to remove."""
    audit_entries: int
    """Entries of the audit trail to remove."""


class StorageKind(Schema):
    """The artifacts or event logs of all runs."""

    kind: str
    """`checkpoints`, `replays`, `videos`, `media` (images and tables) or `event_logs`."""
    files: int
    """Number of files."""
    n_bytes: int
    """Their size in bytes."""


class StorageOut(Schema):
    """Disk usage."""

    kinds: list[StorageKind]
    """The files of all runs, by kind."""
    database_bytes: int
    """Size of the database."""
    removed_files: int
    """Files that clean-up will delete."""


class RunStorage(Schema):
    """Disk usage of a run."""

    run_id: Id
    """Id of the run."""
    name: str = Field(examples=["PAAC on Pong"])
    """Name of the run, as pages show it."""
    group: str | None = Field(examples=["learning rates"])
    """Name of the group that the run belongs to; null for none."""
    state: str
    """State of the run."""
    checkpoints: int
    """Bytes of its checkpoints."""
    replays: int
    """Bytes of its replays."""
    videos: int
    """Bytes of its videos."""
    media: int
    """Bytes of its images and tables."""
    event_logs: int
    """Bytes of its event logs on all hosts."""
    total: int
    """Bytes of all of these."""


class RunStoragePage(Page):
    """The runs that take the most space."""

    items: list[RunStorage]
    """Runs that take the most space, the largest first."""
