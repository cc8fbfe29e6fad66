"""Installations with many runs, many points and many events."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from threading import Event
from time import monotonic, perf_counter

import numpy as np
from playwright.sync_api import Page
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.analysis.metrics import repository as series
from backend.db import Run
from backend.db.engine import writing
from backend.runs.runs import service as run_service
from backend.specs.events import PointsEvent
from backend.specs.run import parse_run_spec
from backend.specs.states import RunState
from tests.support.pages import session_headers
from tests.support.rows import CARTPOLE, make_run
from tests.support.service import RunningService
from tests.support.waiting import until

N_RUNS = 10_000
DRAWING_MS = 600_000
"""Deadline for millions of points on a busy machine."""


def fill(engine: Engine, n_runs: int = N_RUNS) -> None:
    """Store runs; `run 00000` has by far the best score."""
    rng = np.random.default_rng(0)
    spec = parse_run_spec(CARTPOLE)
    for first in range(0, n_runs, 1000):
        with writing(engine) as session:
            for at in range(first, first + 1000):
                named = spec.model_copy(update={"seed": at, "name": f"run {at:05}"})
                run = run_service.create(session, named)
                run.score = float(rng.normal(0, 100)) if at else 1_000.0


ACTIVE_RUNS = 16
LISTENERS = 19
POINTS_PER_S = 50
BATCHES_PER_S = 2
METRICS = ("rollout/episode_return", "loss/value", "loss/policy", "loss/entropy", "optim/grad_norm")


def record(session: Session, run_id: str, batch: int) -> None:
    """Store half a second of a run's points, and say which parts have changed, as the recorder does."""
    points_per_batch = POINTS_PER_S // BATCHES_PER_S // len(METRICS)
    steps = list(range(batch * points_per_batch, (batch + 1) * points_per_batch))
    row = session.get_one(Run, run_id)
    run_service.touch(session, row, {f"series/{metric.split('/')[0]}" for metric in METRICS})
    points = [
        PointsEvent(
            metric=metric,
            agent_steps=steps,
            frames=steps,
            wall_time_s=[step / 1000 for step in steps],
            episodes=steps,
            value=[float(step % 7) for step in steps],
        )
        for metric in METRICS
    ]
    series.append(session, run_id, 1, row.revision, points)


def listen(service: RunningService, received: list[int], listener: int, stopped: Event) -> None:
    with (
        service.new_client() as client,
        client.stream("GET", "/api/v1/events", headers=session_headers(service.client)) as events,
    ):
        for line in events.iter_lines():
            received[listener] += line.startswith("data:")
            if stopped.is_set():
                return


@contextmanager
def under_load(service: RunningService, runs: list[str]) -> Iterator[list[tuple[float, float]]]:
    """Record points of the runs, with listeners at the event stream.

    Yields the first run's scores and when each was announced. At the end every listener must have received
    the events of 40 batches.
    """
    announced: list[tuple[float, float]] = []
    received = [0] * LISTENERS
    stopped = Event()

    def feed() -> None:
        began = monotonic()
        for batch in count():
            for run_id in runs:
                with writing(service.engine) as session:
                    record(session, run_id, batch)
                    if run_id == runs[0]:
                        session.get_one(Run, run_id).score = 100.0 + batch
                service.app_state.bus.publish_changes(session)
                if run_id == runs[0]:
                    announced.append((100.0 + batch, monotonic()))
            if stopped.wait(max(0.0, began + (batch + 1) / BATCHES_PER_S - monotonic())):
                return

    with ThreadPoolExecutor(LISTENERS + 1) as pool:
        work: list[Future[None]] = [
            pool.submit(listen, service, received, k, stopped) for k in range(LISTENERS)
        ]
        work.append(pool.submit(feed))
        try:
            yield announced
            until(lambda: min(received) >= 40 * len(runs))
        finally:
            stopped.set()
        for future in work:
            future.result()


def await_score(page: Page, least: float) -> None:
    """Wait until the run's header shows a score of at least that."""
    page.wait_for_function(
        """least => {
          const text = document.querySelector('main header').textContent;
          const shown = text.match(/Score\\D*(?:\\d+ episodes?)?([0-9.]+)/);
          return shown && Number(shown[1]) >= least;
        }""",
        arg=least,
        timeout=DRAWING_MS,
    )


def append(engine: Engine, run_id: str, seed: int, n_points: int) -> None:
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.integers(1, 400, n_points))
    points = PointsEvent(
        metric="rollout/episode_return",
        agent_steps=steps.tolist(),
        frames=steps.tolist(),
        wall_time_s=(steps / 1000).tolist(),
        episodes=list(range(n_points)),
        value=(np.arange(n_points) / n_points + rng.normal(0, 0.1, n_points)).tolist(),
    )
    with writing(engine) as session:
        series.append(session, run_id, 1, 2, [points])


def compare(page: Page, engine: Engine, n_runs: int, n_points: int) -> float:
    """Seconds from opening a comparison until all its curves are drawn, with the chart library loaded."""
    ids = []
    for seed in range(n_runs):
        run = make_run(engine, RunState.FINISHED, seed=seed, name=f"seed {seed}")
        append(engine, run.id, seed, n_points)
        ids.append(run.id)
    drawn = """n => {
      const chart = document.querySelector('[role=img][aria-label^="Learning curves"]');
      const lines = chart?.data?.filter(trace => trace.meta?.kind === 'line' && trace.x.length > 0) ?? [];
      return new Set(lines.map(trace => trace.meta.run)).size === n;
    }"""
    page.goto(f"/compare?runs={','.join(ids[:2])}")
    page.wait_for_function(drawn, arg=2, timeout=DRAWING_MS)
    page.goto("/")
    page.goto(f"/runs/{ids[0]}")
    page.wait_for_function("() => document.querySelector('.js-plotly-plot') !== null")
    begun = perf_counter()
    page.evaluate(
        "address => { history.pushState({}, '', address); dispatchEvent(new PopStateEvent('popstate')) }",
        f"/compare?runs={','.join(ids)}",
    )
    page.wait_for_function(drawn, arg=n_runs, timeout=DRAWING_MS)
    return perf_counter() - begun
