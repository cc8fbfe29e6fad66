"""How long requests hold SQLite's write lock (`make benchmarks`)."""

from collections import defaultdict
from time import perf_counter
from typing import Any

import pytest

from backend.db.write_lock import WriteTurn
from backend.external.schemas import MAX_LINES, MAX_ROWS, MAX_SERIES_OF_REQUEST
from backend.runs.runs.bulk import MAX_RUNS as MAX_BULK_RUNS
from backend.specs.states import RunState
from tests.support import external
from tests.support.rows import CARTPOLE, make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.service, pytest.mark.benchmark]

GOAL_S = 0.25
N_RUNS = 2_000


@pytest.fixture
def holds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds for which each transaction of this process had the lock."""
    begin, end = WriteTurn.begin, WriteTurn.end
    held: list[float] = []
    since: dict[int, float] = {}

    def begin_timed(turn: WriteTurn, *given: Any) -> None:
        begin(turn, *given)
        since[id(turn)] = perf_counter()

    def end_timed(turn: WriteTurn) -> None:
        if (began := since.pop(id(turn), None)) is not None:
            held.append(perf_counter() - began)
        end(turn)

    monkeypatch.setattr(WriteTurn, "begin", begin_timed)
    monkeypatch.setattr(WriteTurn, "end", end_timed)
    return held


def _points(sequence: int, n_series: int) -> dict[str, Any]:
    rows = MAX_ROWS // n_series
    first = rows * (sequence - 1)
    column = list(range(first, first + rows))
    series = {"agent_steps": column, "wall_time_s": [float(step) for step in column]}
    return {
        "source": external.SOURCE,
        "sequence": sequence,
        "series": [
            series | {"metric": f"loss/{i}", "value": [step * 0.1 for step in column]}
            for i in range(n_series)
        ],
    }


def test_largest_requests_hold_the_write_lock_for_at_most_250_ms(
    sqlite_service: RunningService, holds: list[float]
) -> None:
    client = sqlite_service.client
    longest: dict[str, float] = defaultdict(float)

    def send(name: str, path: str, body: Any, method: str = "POST") -> dict[str, Any]:
        holds.clear()
        answer = client.request(method, f"/api/v1/{path}", json=body, timeout=120)
        assert answer.status_code < 300, answer.text[:1_000]
        longest[name] = max(longest[name], *holds)
        return dict(answer.json()) if answer.content else {}

    for n_series in (1, 20, MAX_SERIES_OF_REQUEST):
        run = external.create(client)
        for sequence in range(1, 7):
            send(f"points of {n_series} series", f"runs/{run['id']}/points", _points(sequence, n_series))
    episodes = external.episodes(7, [1.0] * 5_000)
    send("5,000 episodes", f"runs/{run['id']}/episodes", episodes)
    lines = [{"time": 1.0, "level": "info", "message": "x" * 200}] * MAX_LINES
    send("1,000 lines", f"runs/{run['id']}/log", {"source": external.SOURCE, "sequence": 8, "lines": lines})
    send("100 runs", "runs", CARTPOLE | {"seeds": list(range(100))})
    ids = [make_run(sqlite_service.engine, RunState.FINISHED).id for _ in range(N_RUNS)]
    for action in ({"action": "archive"}, {"action": "tag", "tags": ["a"]}, {"action": "delete"}):
        send(f"bulk {action['action']}", "runs/bulk", action | {"ids": ids[:MAX_BULK_RUNS]})
    for name, seconds in sorted(longest.items(), key=lambda item: -item[1]):
        print(f"{name}: {1000 * seconds:.0f} ms")  # noqa: T201
    assert max(longest.values()) <= GOAL_S
