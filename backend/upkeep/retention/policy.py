"""Retention: what is kept of a run, by which settings, and what clean-up may remove.

A checkpoint or an episode is kept if any of its kind's settings keeps it. If none is set, all are kept.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ConfigDict, Field

from backend.specs.fields import Strict

RESUMABLE = 3
"""Number of latest checkpoints that a run that has not ended always keeps: one may be damaged."""

MAX_KEPT = 10_000
MAX_DAYS = 36_500


def _count(title: str, description: str, *, ge: int = 1) -> Any:
    return Field(default=None, ge=ge, le=MAX_KEPT, title=title, description=description)


def _days(title: str, description: str) -> Any:
    return Field(default=None, ge=1, le=MAX_DAYS, title=title, description=description)


class RetentionPolicy(Strict):
    """How much of each run is kept.

    A checkpoint or an episode is kept if one of the settings of its kind keeps it, and all are if none of
    them is set. Without a number of days, nothing is removed for its age.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"checkpoints_best": 3, "checkpoints_last": 3, "videos_days": 30}]}
    )

    checkpoints_best: int | None = _count(
        "Best checkpoints",
        "Keep the checkpoints with the highest scores. Evaluated checkpoints rank above the others.",
    )
    checkpoints_last: int | None = _count(
        "Latest checkpoints", "Keep the latest checkpoints; the latest one is always kept."
    )
    checkpoints_every_agent_steps: int | None = Field(
        default=None,
        ge=1,
        le=2**53 - 1,
        title="Checkpoint spacing",
        description="Keep the first checkpoint at or after each multiple of this many agent steps.",
    )
    episodes_best: int | None = _count(
        "Best episodes", "Keep the training and the evaluation episodes with the highest returns."
    )
    episodes_last: int | None = _count(
        "Latest episodes", "Keep the latest training and the latest evaluation episodes."
    )
    videos_days: int | None = _days(
        "Videos",
        "Remove videos this many days after they were rendered or received. Videos of episodes can be "
        "rendered again; videos sent by the script of an external run cannot.",
    )
    event_logs: Literal["keep", "compress", "remove"] = Field(
        default="compress",
        title="Event logs",
        description="What happens to the event log of an ended attempt once it is completely recorded in the "
        "database.",
    )
    event_logs_days: int = Field(
        default=1,
        ge=0,
        le=MAX_DAYS,
        title="Event logs after",
        description="Compress or remove an event log this many days after its attempt ended.",
    )
    log_lines_days: int | None = _days("Log lines", "Remove the lines of a run's log after this many days.")

    @property
    def thins_checkpoints(self) -> bool:
        """Whether it removes checkpoints."""
        kept = (self.checkpoints_best, self.checkpoints_last, self.checkpoints_every_agent_steps)
        return any(limit is not None for limit in kept)

    @property
    def thins_episodes(self) -> bool:
        """Whether it removes episodes."""
        return self.episodes_best is not None or self.episodes_last is not None


class InstallationPolicy(RetentionPolicy):
    """How much is kept of runs without group settings, and of the installation's audit trail."""

    audit_days: int | None = _days("Audit trail", "Remove entries of the audit trail after this many days.")


@dataclass(frozen=True)
class StoredCheckpoint:
    """A checkpoint whose file is in the artifact store."""

    id: str
    file: str
    agent_steps: int
    size_bytes: int
    superseded: bool
    evaluated: float | None
    """Highest mean return of its evaluations."""
    score: float | None
    engine_score: float | None = None
    """Mean return that its engine measured before it saved it."""


@dataclass(frozen=True)
class StoredEpisode:
    """An episode whose replay is in the artifact store."""

    id: str
    kind: str
    agent_steps: int
    episode_return: float
    superseded: bool


def removable_checkpoints(
    policy: RetentionPolicy,
    checkpoints: Sequence[StoredCheckpoint],
    *,
    ended: bool,
    awaited: Collection[str] = (),
) -> list[StoredCheckpoint]:
    """The checkpoints of a run that a policy removes.

    Args:
        policy: policy of the run.
        checkpoints: all of the run, latest first.
        ended: whether the run has finished; if not, what its engine needs is kept too.
        awaited: file names of those that a pending evaluation, branch or saliency map needs.
    """
    if not policy.thins_checkpoints:
        return []
    live = [checkpoint for checkpoint in checkpoints if not checkpoint.superseded]
    newest = max(policy.checkpoints_last or 1, 1 if ended else RESUMABLE)
    kept = {checkpoint.id for checkpoint in live[:newest]}
    best = policy.checkpoints_best or 0
    kept |= {checkpoint.id for checkpoint in sorted(live, key=_rank, reverse=True)[:best]}
    if not ended and (again := checkpoint_to_score_again(checkpoints)) is not None:
        kept.add(again.id)
    if policy.checkpoints_every_agent_steps is not None:
        kept |= set(_first_of_each(live, policy.checkpoints_every_agent_steps))
    return [
        checkpoint
        for checkpoint in checkpoints
        if checkpoint.id not in kept and checkpoint.file not in awaited
    ]


def checkpoint_to_score_again(checkpoints: Sequence[StoredCheckpoint]) -> StoredCheckpoint | None:
    """The checkpoint of a run whose parameters its engine scores again when it finishes, if there is one.

    The engine knows only the scores that it measured itself, and keeps the earliest of equal ones.
    """
    scored = [
        checkpoint
        for checkpoint in checkpoints
        if not checkpoint.superseded and checkpoint.engine_score is not None
    ]
    return max(
        scored, key=lambda checkpoint: (checkpoint.engine_score or 0.0, -checkpoint.agent_steps), default=None
    )


def removable_episodes(
    policy: RetentionPolicy, episodes: Sequence[StoredEpisode], *, awaited: Collection[str] = ()
) -> list[str]:
    """The ids of the episodes of a run that a policy removes.

    Args:
        policy: policy of the run.
        episodes: all of the run, latest first.
        awaited: ids of those that jobs need: for videos, thumbnails, branches and saliency maps.
    """
    if not policy.thins_episodes:
        return []
    kept = set(awaited)
    for kind in {episode.kind for episode in episodes}:
        live = [episode for episode in episodes if episode.kind == kind and not episode.superseded]
        kept |= {episode.id for episode in live[: policy.episodes_last or 0]}
        best = sorted(live, key=lambda episode: episode.episode_return, reverse=True)
        kept |= {episode.id for episode in best[: policy.episodes_best or 0]}
    return [episode.id for episode in episodes if episode.id not in kept]


def _rank(checkpoint: StoredCheckpoint) -> tuple[int, float]:
    if checkpoint.evaluated is not None:
        return 2, checkpoint.evaluated
    return (1, checkpoint.score) if checkpoint.score is not None else (0, 0.0)


def _first_of_each(live: Sequence[StoredCheckpoint], every: int) -> Iterator[str]:
    reached = 0
    for checkpoint in reversed(live):
        if checkpoint.agent_steps // every > reached:
            reached = checkpoint.agent_steps // every
            yield checkpoint.id
