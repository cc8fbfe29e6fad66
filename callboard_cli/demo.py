"""The demo run: a finished run that comes with the installation, to be opened before anything is trained.

`demo_run/` holds it as a run directory without checkpoints, with a video of each replay. `make demo`
trains it anew.
"""

import hashlib
import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from backend.platform.settings import Settings
from backend.specs.states import ENDED, RunState
from callboard_cli.run_directory import load_spec

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from backend.coordination.context import Context
    from backend.db import Run
    from backend.specs.events import EndedEvent

FOLDER = Path(__file__).parent / "demo_run"

DEMO_RUN = "01DEM0RVN00000000000000000"
"""Its id in every installation. Once an operator has deleted it, the list of deleted runs has this id."""

HOST = "demo"
LEASE_S = 3600.0
"""Longer than it takes to add the run; after it, a worker would claim it."""


def add_demo_run(settings: Settings) -> None:
    """Add the demo run to an installation that has no run, unless it was deleted there.

    Completes what a killed start has begun, but for videos once the run has ended.
    """
    from backend.coordination.context import Context
    from backend.db.engine import make_engine
    from backend.platform.artifacts import ArtifactStore
    from backend.pubsub.bus import Bus

    class SilentBus(Bus):
        """Publishes nothing: Redis starts later, and so does everybody who would listen."""

        def publish_changes(self, session: "Session") -> None:
            pass

    if not FOLDER.is_dir():
        return
    store, bus = ArtifactStore(settings.artifacts), SilentBus(settings.redis)
    with closing(Context(settings, make_engine(settings.database), store, bus)) as context:
        if begin(context):
            record(context)


def begin(context: "Context") -> bool:
    """Create the run if the installation is empty; returns whether it is still to be recorded."""
    from backend.coordination import claims
    from backend.runs.runs import service as runs

    with context.writing() as session:
        if not runs.has_any(session) and not runs.deleted_among(session, [DEMO_RUN]):
            run = runs.create(session, load_spec(FOLDER), run_id=DEMO_RUN, reason="came with Callboard")
            run.demo = True
            # In the same transaction, so that no worker can claim it.
            claims.start_attempt(session, run, HOST, LEASE_S)
            return True
        begun = runs.find(session, DEMO_RUN)
        return begun is not None and begun.state not in ENDED and begun.attempt == 1


def record(context: "Context") -> None:
    """Record its log, replays and videos."""
    from backend.replays.episodes import service as episodes
    from workers.recorder import Recorder

    folder = context.run_dir(DEMO_RUN)
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    Recorder(context, DEMO_RUN, 1).conclude(_end)
    with context.writing() as session:
        for episode in episodes.recorded(session, DEMO_RUN):
            video = folder / "videos" / f"{Path(episode.replay).stem}.mp4"
            if video.is_file() and episode.video is None:
                stored = video.rename(video.with_name(f"{episode.id}.mp4"))
                context.store.put(stored, DEMO_RUN, "videos")
                episodes.record_video(
                    session,
                    episode.id,
                    file=stored.name,
                    sha256=hashlib.sha256(stored.read_bytes()).hexdigest(),
                    observations_sha256=None,
                    n_bytes=stored.stat().st_size,
                )


def _end(session: "Session", run: "Run", final_event: "EndedEvent | None") -> None:
    from backend.coordination import claims

    reason = final_event.reason if final_event else "its log is damaged"
    claims.end_attempt(session, run, RunState.FINISHED if final_event else RunState.STOPPED, reason)
