"""Test files: replays of stored episodes, videos."""

from pathlib import Path
from typing import Any

import av
import numpy as np
from sqlalchemy import Engine

from backend.db import Episode, Run
from backend.db.engine import writing
from backend.platform.artifacts import ArtifactStore
from tests.support.rows import episode_row

N_STEPS = 5


def make_episode(
    engine: Engine,
    run: Run,
    store: ArtifactStore | None = None,
    folder: Path | None = None,
    lives: tuple[int, ...] = (0,) * N_STEPS,
    action_names: tuple[str, ...] = ("LEFT", "RIGHT"),
    **changes: Any,
) -> Episode:
    """Store an episode; with a store, also its replay (written to `folder` first)."""
    counts = {"length_steps": N_STEPS, "length_frames": 4 * N_STEPS}
    episode = episode_row(run.id, **(counts | changes))
    if store is not None and folder is not None:
        path = folder / episode.replay
        np.savez(
            path,
            actions=np.arange(N_STEPS) % 2,
            rewards=np.ones(N_STEPS, np.float32),
            values=np.array([0.1, np.nan, np.inf, 2.0, 3.0], np.float32),
            policies=np.full((N_STEPS, len(action_names)), 1 / len(action_names), np.float16),
            frames_per_step=4,
            seed=7,
            lives=np.array(lives, np.int8),
            action_names=np.array(action_names),
        )
        store.put(path, run.id, "replays")
    with writing(engine) as session:
        session.add(episode)
    return episode


def make_video(path: Path, duration_s: float) -> None:
    """Write an H.264 video of a brightening grey, ten frames per second."""
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        for shade in np.linspace(0, 255, round(10 * duration_s)):
            frame = np.full((64, 64, 3), shade, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
