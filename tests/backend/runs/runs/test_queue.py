from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.runs.runs.queue import Place, plan_move
from backend.specs.states import RunState
from tests.support.rows import make_run
from tests.support.service import RunningService


def _in_order(places: dict[str, int]) -> list[Place]:
    return sorted(places.items(), key=lambda place: (-place[1], place[0]))


@given(
    st.dictionaries(st.sampled_from("abcdefghij"), st.integers(-3, 3), min_size=1).flatmap(
        lambda queue: st.tuples(
            st.just(queue), st.sampled_from(sorted(queue)), st.sampled_from(sorted(queue))
        )
    )
)
def test_moved_run_follows_the_other_and_all_others_keep_their_order(
    case: tuple[dict[str, int], str, str],
) -> None:
    queue, run, after = case
    before = [name for name, _ in _in_order(queue) if name != run]
    changes = plan_move(_in_order(queue), run, None if after == run else after)
    order = [name for name, _ in _in_order(queue | changes)]
    assert order.index(run) == (0 if after == run else order.index(after) + 1)
    assert [name for name in order if name != run] == before
    assert all(priority > queue[name] for name, priority in changes.items() if name != run)


def test_moving_a_run_to_where_it_is_changes_nothing() -> None:
    assert plan_move([("a", 1), ("b", 0), ("c", 0)], "b", "a") == {}
    assert plan_move([("a", 1), ("b", 0), ("c", 0)], "a", None) == {}


def test_run_at_the_lowest_priority_moves_behind_another_one() -> None:
    assert plan_move([("a", -100), ("b", -100)], "a", "b") == {"b": -99}


def _queue(service: RunningService) -> list[tuple[str, int]]:
    waiting = service.client.get("/api/v1/hosts").json()["waiting_runs"]
    return [(run["id"], run["priority"]) for run in waiting]


def _move(service: RunningService, run: str, **body: Any) -> int:
    return service.client.post(f"/api/v1/runs/{run}/queue", json=body).status_code


@pytest.mark.service
def test_queued_runs_are_moved_to_the_front_and_behind_another(service: RunningService) -> None:
    a, b, c = (make_run(service.engine).id for _ in range(3))
    assert _move(service, c) == 200
    assert _queue(service) == [(c, 1), (a, 0), (b, 0)]
    assert _move(service, a, after=b) == 200
    assert _queue(service) == [(c, 1), (b, 0), (a, -1)]
    assert _move(service, a, after=c) == 200
    assert _queue(service) == [(c, 1), (a, 0), (b, 0)]
    assert _move(service, b, after=c) == 200
    assert _queue(service) == [(c, 2), (b, 1), (a, 0)]
    assert service.client.get(f"/api/v1/runs/{b}/queue").json()["position"] == 2


@pytest.mark.service
def test_move_in_the_queue_is_refused_with_its_reason(service: RunningService) -> None:
    first = make_run(service.engine, priority=100).id
    later = make_run(service.engine).id
    running = make_run(service.engine, RunState.RUNNING).id
    answer = service.client.post(f"/api/v1/runs/{running}/queue", json={})
    assert (answer.status_code, "running" in answer.json()["detail"]) == (409, True)
    for after in (later, running, "0" * 26):
        answer = service.client.post(f"/api/v1/runs/{later}/queue", json={"after": after})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "after")
    answer = service.client.post(f"/api/v1/runs/{later}/queue", json={})
    assert (answer.status_code, "highest priority" in answer.json()["detail"]) == (409, True)
    assert _queue(service) == [(first, 100), (later, 0)]
