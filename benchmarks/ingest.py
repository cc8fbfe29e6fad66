"""Speed of ingest: the recorder, as a worker runs it, over a real event log."""

import os
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from backend.coordination import claims
from backend.coordination.context import Context
from backend.db.engine import writing
from backend.fleet.hosts import service as hosts
from backend.platform.settings import Settings
from backend.runs.runs import service as runs
from backend.specs.events import AnyEvent, PointsEvent, ReportEvent, StartedEvent
from backend.specs.run import parse_run_spec
from workers.engine.training.event_log import EventLog
from workers.recorder import Recorder

N_POINTS = 1_000_000
N_SERIES = 10
"""About the number that PAAC logs."""

FRAME_ROWS = 100
"""Points per series and frame, as flushed by an engine on a fast environment."""

_HOST = "bench"
_REPEATS = 3


def bench(settings: Settings) -> dict[str, float]:
    """Measure on a migrated database without runs; one run per repeat stays in it.

    Args:
        settings: settings with the database and a home for run directories.

    Returns:
        `ingest_points_per_s`: median rate of reading, parsing and committing a log of `N_POINTS` points.
    """
    log = settings.home_dir / "events.log"
    write_log(log)
    context = Context.from_settings(settings)
    try:
        rates = [N_POINTS / _record_s(context, log) for _ in range(_REPEATS)]
    finally:
        context.close()
    return {"ingest_points_per_s": median(rates)}


def write_log(path: Path) -> None:
    """Write the event log of an engine that trained without being recorded."""
    rng = np.random.default_rng(0)
    log = EventLog(path)
    log.add(StartedEvent(time=0.0, device="cpu", pid=1))
    step, wall_time_s = 0, 0.0
    for frame in range(N_POINTS // (N_SERIES * FRAME_ROWS)):
        steps = step + np.cumsum(rng.integers(1, 400, FRAME_ROWS))
        times = wall_time_s + np.cumsum(rng.gamma(4.0, 0.02, FRAME_ROWS))
        step, wall_time_s = int(steps[-1]), float(times[-1])
        events: list[AnyEvent] = [
            PointsEvent(
                metric=f"recorded/{at}",
                agent_steps=steps.tolist(),
                frames=(4 * steps).tolist(),
                wall_time_s=np.round(times, 6).tolist(),
                episodes=(FRAME_ROWS * frame + np.arange(FRAME_ROWS)).tolist(),
                value=rng.normal(size=FRAME_ROWS).astype("f4").tolist(),
            )
            for at in range(N_SERIES)
        ]
        report = ReportEvent(
            agent_steps=step,
            frames=4 * step,
            updates=frame,
            wall_time_s=wall_time_s,
            episodes=FRAME_ROWS * frame,
            agent_steps_per_s=1000.0,
            mean_return_100=0.0,
            best_return=0.0,
        )
        log.add(*events, report)
        log.flush()
    log.close()


def _record_s(context: Context, log: Path) -> float:
    claim = _create_and_claim(context)
    folder = context.run_dir(claim.run_id) / "attempts" / str(claim.attempt)
    folder.mkdir(parents=True)
    os.link(log, folder / "events.log")
    recorder = Recorder(context, claim.run_id, claim.attempt)
    started = perf_counter()
    while recorder.record():
        pass
    return perf_counter() - started


def _create_and_claim(context: Context) -> claims.Claim:
    """Create and claim a run, as a worker would."""
    spec = parse_run_spec(
        {"algorithm": "paac", "environment": "CartPole-v1", "stop": {"agent_steps": 1}, "host": _HOST}
    )
    with writing(context.db_engine) as session:
        hosts.record_heartbeat(
            session,
            _HOST,
            queues=[],
            slots=1,
            cpu_count=1,
            memory_bytes=0,
            devices=[],
            environments=[spec.environment],
            versions={},
            load={},
        )
        runs.create(session, spec)
        claim = claims.claim(session, _HOST, queues=[], free_memory_bytes=2**60, lease_s=3600.0)
    assert claim is not None, "the run pinned to this host can be claimed"
    return claim
