"""Response bodies of videos."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from backend.db import Job, Video
from backend.platform.schemas import Id, Number, Page
from backend.specs.fields import Schema


class VideoOut(Schema):
    """A video that the script of an external run has sent."""

    id: Id
    """Id of the video."""
    run_id: Id
    """Id of the external run whose script sent the video."""
    received_at: datetime
    """When the server received it."""
    agent_steps: int = Field(examples=[1_000_000])
    """Agent steps of the run that it belongs to."""
    wall_time_s: Number = Field(examples=[294.5])
    """Training time of the run that the video belongs to, in seconds."""
    state: Literal["queued", "running", "done", "failed"]
    """State of the video: a worker encodes it as H.264; until it is `done` it cannot be watched."""
    error: str | None
    """Why the video cannot be shown; null if it can, or is not encoded yet."""
    n_frames: int | None
    """Number of frames of the encoded video; null before."""
    duration_s: Number
    """How long the encoded video plays, in seconds; null before."""
    size_bytes: int = Field(examples=[2_719_744])
    """Size of the encoded video; before, of what was sent."""

    @classmethod
    def of(cls, video: Video, job: Job | None) -> "VideoOut":
        """From the rows of the video and of the job that encodes it."""
        if video.video is not None:
            state = "done"
        elif video.error is not None or job is None or job.state in ("failed", "done"):
            state = "failed"
        else:
            state = job.state
        lines = ((job.error if job is not None else None) or "").strip().splitlines()
        error = video.error or ((lines or ["it could not be encoded"])[-1] if state == "failed" else None)
        names = ("id", "run_id", "received_at", "agent_steps", "wall_time_s", "n_frames", "duration_s")
        row = {name: getattr(video, name) for name in names}
        size_bytes = video.video_bytes + video.sent_bytes
        return cls.model_validate(row | {"state": state, "error": error, "size_bytes": size_bytes})


class VideoPage(Page):
    """A page of videos."""

    items: list[VideoOut]
    """Videos of this page."""
