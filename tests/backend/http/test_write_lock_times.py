"""How long SQLite's write lock is held by each kind of large write."""

from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest

from backend.db.write_lock import WriteTurn
from backend.external.schemas import MAX_SERIES_OF_REQUEST
from backend.specs.states import RunState
from tests.support import external
from tests.support.rows import CARTPOLE, make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.benchmark, pytest.mark.service]

MAX_HELD_S = 0.25
N_RUNS = 1_000
N_REQUESTS = 20


def _points(service: RunningService) -> Callable[[int], Any]:
    run = external.create(service.client)

    def send(sequence: int) -> Any:
        at = list(range(40 * sequence, 40 * sequence + 40))
        rows = {"agent_steps": at, "wall_time_s": [float(n) for n in at], "value": [0.5] * len(at)}
        series = [{"metric": f"storm/{n}"} | rows for n in range(MAX_SERIES_OF_REQUEST)]
        body = {"source": external.SOURCE, "sequence": sequence, "series": series}
        return service.client.post(f"/api/v1/runs/{run['id']}/points", json=body)

    return send


def _episodes(service: RunningService) -> Callable[[int], Any]:
    run = external.create(service.client)

    def send(sequence: int) -> Any:
        body = external.episodes(sequence, [1.0] * 1_000, 1_000 * sequence)
        return service.client.post(f"/api/v1/runs/{run['id']}/episodes", json=body)

    return send


def _log(service: RunningService) -> Callable[[int], Any]:
    run = external.create(service.client)
    line = {"time": "2026-01-01T00:00:00Z", "level": "info", "message": "x" * 1_800}

    def send(sequence: int) -> Any:
        body = {"source": external.SOURCE, "sequence": sequence, "lines": [line] * 1_000}
        return service.client.post(f"/api/v1/runs/{run['id']}/log", json=body)

    return send


def _bulk(service: RunningService) -> Callable[[int], Any]:
    ids = [make_run(service.engine, RunState.FAILED).id for _ in range(N_RUNS)]

    def send(sequence: int) -> Any:
        action = {"action": ("tag", "untag")[sequence % 2], "ids": ids, "tags": ["a tag"]}
        return service.client.post("/api/v1/runs/bulk", json=action)

    return send


def _deletion(service: RunningService) -> Callable[[int], Any]:
    ids = [make_run(service.engine, RunState.FAILED).id for _ in range(N_RUNS)]

    def send(sequence: int) -> Any:
        part = ids[50 * (sequence - 1) : 50 * sequence]
        return service.client.post("/api/v1/runs/bulk", json={"action": "delete", "ids": part})

    return send


def _seeds(service: RunningService) -> Callable[[int], Any]:
    def send(sequence: int) -> Any:
        seeds = list(range(100 * sequence, 100 * sequence + 100))
        return service.client.post("/api/v1/runs", json=CARTPOLE | {"seeds": seeds})

    return send


def _sweep(service: RunningService) -> Callable[[int], Any]:
    def send(sequence: int) -> Any:
        values = [n * 1e-5 for n in range(1, 101)]
        body = {
            "name": f"sweep {sequence}",
            "run": CARTPOLE,
            "space": {"config.learning_rate": {"values": values}},
        }
        return service.client.post("/api/v1/sweeps", json=body)

    return send


KINDS: dict[str, Callable[[RunningService], Callable[[int], Any]]] = {
    "points": _points,
    "episodes": _episodes,
    "log": _log,
    "bulk": _bulk,
    "deletion": _deletion,
    "seeds": _seeds,
    "sweep": _sweep,
}


@pytest.mark.parametrize("kind", KINDS)
def test_write_lock_is_held_for_at_most_a_quarter_of_a_second(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    send = KINDS[kind](sqlite_service)
    begin, end = WriteTurn.begin, WriteTurn.end
    began_s: dict[int, float] = {}
    held_s: list[float] = []

    def begun(turn: WriteTurn, *given: Any) -> None:
        begin(turn, *given)
        began_s[id(turn)] = monotonic()

    def ended(turn: WriteTurn) -> None:
        if id(turn) in began_s:
            held_s.append(monotonic() - began_s.pop(id(turn)))
        end(turn)

    monkeypatch.setattr(WriteTurn, "begin", begun)
    monkeypatch.setattr(WriteTurn, "end", ended)
    for sequence in range(1, N_REQUESTS + 1):
        answer = send(sequence)
        assert answer.status_code < 300, answer.text
    print(f"{kind}: {len(held_s)} transactions, {max(held_s):.3f} s at most, then {sorted(held_s)[-2]:.3f} s")  # noqa: T201
    assert max(held_s) <= MAX_HELD_S
