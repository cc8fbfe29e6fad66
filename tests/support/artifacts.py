"""Rows with files to test with: episodes with replays, checkpoints."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import av
import numpy as np
from sqlalchemy import Engine

from backend.artifacts import ArtifactStore
from backend.db import Checkpoint, Episode, Run
from backend.db.engine import writing
from backend.db.ids import new_id

N_STEPS = 5


def make_episode(
    engine: Engine,
    run: Run,
    store: ArtifactStore | None = None,
    folder: Path | None = None,
    lives: tuple[int, ...] = (0,) * N_STEPS,
    **changes: Any,
) -> Episode:
    """Store an episode; with a store, its replay too (by way of `folder`)."""
    row: dict[str, Any] = {
        "id": new_id(), "run_id": run.id, "attempt": 1, "kind": "training", "source": "",
        "recorded_at": datetime.now(UTC), "agent_steps": 100, "frames": 400, "wall_time_s": 1.0, "seed": 7,
        "episode_return": 5.0, "length_steps": N_STEPS, "length_frames": 4 * N_STEPS, "replay": "r.npz",
        "video": None, "superseded": False,
    }  # fmt: skip
    episode = Episode(**(row | changes))
    if store is not None and folder is not None:
        path = folder / episode.replay
        np.savez(
            path,
            actions=np.arange(N_STEPS) % 2,
            rewards=np.ones(N_STEPS, np.float32),
            values=np.array([0.1, np.nan, np.inf, 2.0, 3.0], np.float32),
            policies=np.full((N_STEPS, 2), 0.5, np.float16),
            frames_per_step=4,
            seed=7,
            lives=np.array(lives, np.int8),
            action_names=np.array(["LEFT", "RIGHT"]),
        )
        store.put(path, run.id, "replays")
    with writing(engine) as session:
        session.add(episode)
    return episode


def make_checkpoint(engine: Engine, run: Run, agent_steps: int = 100, **changes: Any) -> Checkpoint:
    """Store a checkpoint's row."""
    row: dict[str, Any] = {
        "id": new_id(), "run_id": run.id, "attempt": 1, "recorded_at": datetime.now(UTC),
        "agent_steps": agent_steps, "frames": 4 * agent_steps, "updates": 1, "episodes": 2,
        "file": f"{agent_steps}.pt", "sha256": "0" * 64, "size_bytes": 10, "removed": False,
        "superseded": False, "wall_time_s": 3.0,
    }  # fmt: skip
    checkpoint = Checkpoint(**(row | changes))
    with writing(engine) as session:
        session.add(checkpoint)
    return checkpoint


def make_video(path: Path, duration_s: float) -> None:
    """An H.264 film of a grey that grows lighter, ten pictures a second."""
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        for shade in np.linspace(0, 255, round(10 * duration_s)):
            picture = np.full((64, 64, 3), shade, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
