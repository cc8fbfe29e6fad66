"""Recorded games, and start sets as if a worker had verified them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Engine

from backend.db import Episode, Run
from backend.db.base import new_id
from backend.db.engine import writing
from backend.platform.artifacts import ArtifactStore
from backend.replays.recordings import service as recordings
from backend.replays.start_sets import service as start_sets
from backend.runs.starts import service as starts
from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.atari import ROM_MD5
from backend.specs.play import play_config
from backend.specs.recordings import GameStart, Part
from backend.specs.start_sets import StartSetContent
from tests.support.rows import episode_row


def add_game(
    engine: Engine,
    store: ArtifactStore,
    run: Run,
    folder: Path,
    *,
    protocol: str = "",
    n: int = 50,
    **row: Any,
) -> Episode:
    """Store a recorded episode of `n` decisions that no emulator has played: the web process replays none."""
    file = folder / f"a1-training-{run.id}-{row.get('agent_steps', 100)}.npz"
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        file,
        actions=np.arange(n, dtype=np.int16) % 4,
        rewards=np.ones(n, np.float32),
        lives=np.full(n, 3, np.int8),
        seed=np.int64(7),
        protocol=np.str_(protocol),
    )
    store.put(file, run.id, "replays")
    with writing(engine) as session:
        episode = episode_row(run.id, replay=file.name, **row)
        session.add(episode)
    return episode


def add_recording(
    engine: Engine,
    user_id: str,
    *,
    environment: str = "ALE/Breakout-v5",
    protocol: str = "human_play",
    n: int = 50,
    ended: bool = True,
    session_id: str | None = None,
    turns: Sequence[tuple[int, int]] = (),
    rewards: Sequence[float] = (),
) -> str:
    """Store the recording of a game of `n` decisions that no emulator has played; return its id.

    Its session is `session_id`, or one whose row is gone. Without `rewards` each is 1.
    """
    config = play_config(ENVIRONMENTS[environment], every_frame=False).model_dump(mode="json")
    start = GameStart(
        seed=7, frames_per_step=4, action_names=["NOOP", "FIRE"], rom_sha256="0" * 64, versions={}
    )
    part = Part(
        first_step=0,
        actions=[k % 4 for k in range(n)],
        rewards=list(rewards) or [1.0] * n,
        lives=[3] * n,
        n_frames=4 * n,
        inputs=[],
        finished=ended,
        turns=list(turns),
    )
    with writing(engine) as session:
        row = recordings.start(
            session,
            session_id=session_id or new_id(),
            user_id=user_id,
            environment=environment,
            environment_config=config,
            protocol=protocol,
            game=start,
        )
        assert recordings.append(session, row.id, part)
        return row.id


def mark_verified(engine: Engine, set_id: str) -> None:
    """Record what a worker reports of a set, with hashes of no emulator."""
    with writing(engine) as session:
        content = starts.document_of(session, set_id)
        assert content is not None
        wanted = StartSetContent.model_validate_json(content)
        update = {"frames": 100, "ram_sha256": "1" * 64, "screen_sha256": "2" * 64}
        verified = wanted.model_copy(
            update={
                "points": [point.model_copy(update=update) for point in wanted.points],
                "rom_md5": ROM_MD5[wanted.environment],
                "ale_py": "0.12.1",
            }
        )
        starts.record_verified(session, set_id, verified, b"states")
        assert start_sets.get(session, set_id).state == "ready"
