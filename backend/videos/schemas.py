"""Response bodies of videos."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel

from backend.db import Job, Video
from backend.schemas import Number, Page


class VideoOut(BaseModel):
    """A video that the script of an external run has sent."""

    id: str
    run_id: str
    received_at: datetime
    """When the server received it."""
    agent_steps: int
    """Agent steps of the run that it belongs to."""
    wall_time_s: Number
    state: Literal["queued", "running", "done", "failed"]
    """A worker encodes it as H.264; until then it cannot be watched."""
    error: str | None
    """Why it cannot be shown."""
    n_frames: int | None
    """Frames of the encoded video."""
    duration_s: Number
    """How long it plays, in seconds."""
    size_bytes: int
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


class VideoPage(Page[VideoOut]):
    """A page of videos."""
