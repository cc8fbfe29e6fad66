from typing import Any

import numpy as np
import pytest

from backend.analysis.metrics import repository
from backend.db.engine import writing
from backend.runs.runs import service as runs
from backend.specs.events import PointsEvent
from tests.support.rows import make_checkpoint, make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

STEPS = range(10, 2_001, 10)


def _points(metric: str, values: list[float], source: str = "") -> PointsEvent:
    steps = list(STEPS)[: len(values)]
    return PointsEvent(
        metric=metric,
        source=source,
        agent_steps=steps,
        frames=[4 * at for at in steps],
        wall_time_s=[at / 100 for at in steps],
        episodes=[0] * len(steps),
        value=values,
    )


def _collapsed(service: RunningService) -> str:
    """A run whose entropy falls, and whose loss is NaN, from agent step 1,000 on."""
    run = make_run(service.engine)
    rng = np.random.default_rng(0)
    late = np.array(STEPS) > 1000
    entropy = np.where(late, 0.02, 1.2) + rng.normal(0, 0.05, len(late))
    metrics = {
        "loss/entropy": entropy,
        "loss/value": np.where(late, np.nan, 0.3),
        "optim/learning_rate": np.where(late, 1e-4, 7e-4),
        "speed/updates_per_s": rng.normal(100, 5, len(late)),
        "system/rss_bytes": 2.0**20 * np.where(late, 900, 400),
    }
    points = [_points(name, values.tolist()) for name, values in metrics.items()]
    points += [_points("loss/entropy", [9.0] * 5, "actor-1"), _points("eval/plain/mean_return", [1.0])]
    with writing(service.engine) as session:
        locked = runs.find(session, run.id, for_update=True)
        assert locked is not None
        repository.append(session, run.id, 1, locked.revision + 1, points)
    for at in (500, 900, 1500):
        make_checkpoint(service.engine, run, at)
    return run.id


def _read(service: RunningService, run_id: str, low: int, high: int) -> dict[str, Any]:
    params = {"range_from": low, "range_to": high}
    answer = service.client.get(f"/api/v1/runs/{run_id}/changes", params=params)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_changes_name_what_changed_most_and_the_checkpoint_before(service: RunningService) -> None:
    run_id = _collapsed(service)
    answer = _read(service, run_id, 1001, 1600)
    assert (answer["before_from"], answer["n_metrics"]) == (402, 5)
    loss, rate, entropy, memory, speed = answer["items"]  # what the machine changes last
    assert (loss["metric"], loss["becomes_not_finite"], loss["inside"]) == ("loss/value", True, None)
    assert (rate["metric"], rate["was_constant"], rate["score"]) == ("optim/learning_rate", True, None)
    assert (rate["before"], rate["inside"]) == (pytest.approx(7e-4), pytest.approx(1e-4))
    assert (entropy["metric"], entropy["title"]) == ("loss/entropy", "Policy entropy")
    assert entropy["inside"] == pytest.approx(0.02, abs=0.03)
    assert entropy["score"] < -15
    assert (memory["title"], memory["unit"], memory["inside"]) == ("Memory", "MiB", 900)
    assert (speed["metric"], speed["of_machine"], loss["of_machine"]) == ("speed/updates_per_s", True, False)
    assert abs(speed["score"]) < 1
    assert answer["checkpoint"]["agent_steps"] == 900


@pytest.mark.parametrize(("x", "low", "high"), [("frames", 4020, 6420), ("wall_time_s", 10.05, 16.05)])
def test_changes_of_a_range_of_another_axis_are_the_same(
    service: RunningService, x: str, low: float, high: float
) -> None:
    run_id = _collapsed(service)
    wanted = _read(service, run_id, 1005, 1605)
    params: dict[str, float | str] = {"range_from": low, "range_to": high, "x": x}
    answer = service.client.get(f"/api/v1/runs/{run_id}/changes", params=params).json()
    assert answer["items"] == wanted["items"]
    assert answer["before_from"] == pytest.approx(low - (high - low))
    assert [answer["agent_steps_from"], answer["agent_steps_to"]] == pytest.approx([1005, 1605], abs=1)
    if x == "frames":
        assert answer["checkpoint"] == wanted["checkpoint"]


def test_changes_of_a_run_with_many_metrics_are_read_less_finely(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = _collapsed(sqlite_service)
    monkeypatch.setattr("backend.analysis.metrics.service.MAX_BUCKETS", 200)
    assert _read(sqlite_service, run_id, 1_000, 2_000)["n_metrics"] > 1


def test_changes_of_a_calm_range_are_small(service: RunningService) -> None:
    answer = _read(service, _collapsed(service), 600, 900)
    assert all(abs(item["score"]) < 2 for item in answer["items"])
    assert not any(item["was_constant"] or item["becomes_not_finite"] for item in answer["items"])
    assert answer["checkpoint"]["agent_steps"] == 500


def test_single_nan_among_many_points_is_a_change(sqlite_service: RunningService) -> None:
    run = make_run(sqlite_service.engine)
    values = np.full(8_000, 0.5)
    values[6_000] = np.nan
    steps = list(range(1, 8_001))
    event = PointsEvent(
        metric="loss/value",
        source="",
        agent_steps=steps,
        frames=steps,
        wall_time_s=[float(at) for at in steps],
        episodes=[0] * len(steps),
        value=values.tolist(),
    )
    with writing(sqlite_service.engine) as session:
        locked = runs.find(session, run.id, for_update=True)
        assert locked is not None
        repository.append(session, run.id, 1, locked.revision + 1, [event])
    [loss] = _read(sqlite_service, run.id, 4_000, 8_000)["items"]
    assert loss["becomes_not_finite"]
    calm = _read(sqlite_service, run.id, 6_500, 7_000)["items"]
    assert not any(item["becomes_not_finite"] for item in calm)


def test_changes_at_the_start_of_a_run_have_nothing_to_compare(sqlite_service: RunningService) -> None:
    run_id = _collapsed(sqlite_service)
    answer = _read(sqlite_service, run_id, 0, 400)
    assert (answer["before_from"], answer["items"], answer["checkpoint"]) == (0, [], None)
    url = f"/api/v1/runs/{run_id}/changes"
    wrong = sqlite_service.client.get(url, params={"range_from": 5, "range_to": 5})
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "range_to")
    params = {"range_from": 0, "range_to": 5}
    unknown = sqlite_service.client.get(f"/api/v1/runs/{'0' * 26}/changes", params=params)
    assert unknown.status_code == 404
