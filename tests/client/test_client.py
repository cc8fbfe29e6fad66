"""`callboard.connect`: start, find, follow and read runs of the real service."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest

import callboard
from backend.db.engine import writing
from backend.pubsub.bus import Bus
from callboard import following
from tests.client.support import Answer, Proxy, Target
from tests.support.rows import episode_row
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.service


def test_runs_are_started_found_and_stopped(target: Target) -> None:
    with callboard.connect() as client:
        runs = client.start(
            "paac",
            "CartPole-v1",
            seeds=np.arange(3.0),
            config={"n_e": 8},
            stop={"agent_steps": 1_000},
            tags=["x"],
        )
        assert [run.seed for run in runs] == [0, 1, 2]
        assert {run.state for run in runs} == {"queued"}
        assert {run.data["spec"]["config"]["n_e"] for run in runs} == {8}
        assert [run.id for run in client.runs("tag:x", sort="seed")] == [run.id for run in runs]
        assert len(client.runs("tag:y")) == 0
        assert len(client.runs(limit=2)) == 2
        assert client.run(runs[1].id).name == runs[1].name
        with pytest.raises(TimeoutError, match="3 of 3"):
            runs.wait(timeout_s=0)
        runs[0].stop()
        assert runs[0].wait(timeout_s=PATIENCE_S).has_ended
        runs[1:].stop()
        assert runs.wait(timeout_s=PATIENCE_S) is runs
        assert {run.state for run in runs} == {"stopped"}


def simulate_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the clock of `wait`: a pause takes no time, and advances the clock by its length."""
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("callboard.runs.time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))


def test_wait_survives_outages_of_less_than_a_minute(
    target: Target, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        callboard.init(algorithm="a", environment="e", url=target.service.url) as logged,
        callboard.connect() as client,
    ):
        run = client.run(str(logged.id))
        answers = [*[Answer(503)] * 59, None] * 2  # one a second; after each outage the run is still running

        def answer(path: str, body: bytes) -> Answer | None:
            if answers:
                return answers.pop(0)
            logged.close()
            return None

        proxy.answer = answer
        simulate_time(monkeypatch)
        assert run.wait(progress=False).state == "finished"
    assert (proxy.n_answered, answers) == (118, [])


@pytest.mark.parametrize(("timeout_s", "n_requests"), [(None, 61), (5.0, 6)])
def test_wait_raises_unreachable_after_a_minute_or_its_timeout(
    target: Target,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    timeout_s: float | None,
    n_requests: int,
) -> None:
    with (
        callboard.init(algorithm="a", environment="e", url=target.service.url) as logged,
        callboard.connect() as client,
    ):
        run = client.run(str(logged.id))
        proxy.answer = lambda path, body: Answer(503)
        simulate_time(monkeypatch)
        with pytest.raises(callboard.Unreachable):
            run.wait(timeout_s, progress=False)
    assert proxy.n_answered == n_requests, "one a second"


def test_many_runs_are_read_and_stopped_though_one_ends_meanwhile(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    with callboard.connect() as client:
        for first in (0, 60):
            client.start("paac", "CartPole-v1", seeds=range(first, first + 60), stop={"agent_steps": 1_000})
        runs = client.runs(limit=200)
        assert len(runs.refresh()) == 120
        refresh = callboard.Runs.refresh

        def refresh_while_one_ends(self: callboard.Runs) -> callboard.Runs:
            refresh(self)
            client.run(self[1].id).stop()
            return self

        first_runs = runs[:3]
        monkeypatch.setattr(callboard.Runs, "refresh", refresh_while_one_ends)
        first_runs.stop()
        assert [client.run(run.id).state for run in first_runs] == ["stopped"] * 3


def test_notes_at_steps_are_added_and_read(target: Target) -> None:
    with callboard.init(algorithm="a", environment="e") as logged:
        logged.log({"loss/policy": 1.0}, agent_steps=1_500)
    with callboard.connect() as client:
        run = client.run(str(logged.id))
        assert run.step_notes() == []
        later = run.add_step_note("collapse", 1_500)
        earlier = run.add_step_note(" entropy falls ", agent_steps=np.float64(4e2))
        assert (earlier["text"], earlier["agent_steps"]) == ("entropy falls", 400)
        assert run.step_notes() == [earlier, later]
        with pytest.raises(callboard.Rejected, match="1,500 agent steps so far") as refused:
            run.add_step_note("later", 1_501)
        assert set(refused.value.fields) == {"agent_steps"}
        with pytest.raises(ValueError, match=r"^agent_steps: must be a whole number: got 0\.5"):
            run.add_step_note("between", 0.5)


def test_refused_requests_name_the_fields(target: Target) -> None:
    with callboard.connect() as client:
        with pytest.raises(callboard.Rejected) as refused:
            client.start("paac", "CartPole-v1", config={"n_e": -1, "nonsense": 1}, stop={"score": 9})
        assert set(refused.value.fields) == {"config.n_e", "config.nonsense"}
        assert refused.value.status == 422
        cases: list[tuple[dict[str, Any], str]] = [
            ({"seeds": 3}, r"seeds: must be a list, such as range\(3\): got 3"),
            ({"seeds": "10"}, r"seeds: must be a list, such as range\(3\): got '10'"),
            ({"seeds": {7: "a"}}, "seeds: must be a list"),
            ({"seeds": bytearray(b"10")}, "seeds: must be a list"),
            ({"seeds": np.array(3)}, "seeds: must be a list"),
            ({"seeds": [1.5]}, r"seeds: must be whole numbers: got 1\.5"),
            ({"seeds": ["1"]}, "seeds: must be a number: got '1'"),
            ({"seeds": [-1]}, r"seeds\.0: must be an integer from 0 to"),
            ({"seed": 1}, "seed: "),
            ({"stop": 9}, "stop: must be limits"),
            ({"stop": None}, "stop: set at least one limit, such as stop="),
            ({"stop": {}}, "stop: set at least one limit: agent_steps, wall_time_s or score"),
        ]
        for changes, message in cases:
            wrong: dict[str, Any] = {"stop": {"score": 9}} | changes
            with pytest.raises(ValueError, match=f"^{message}"):
                client.start("paac", "CartPole-v1", **wrong)
        with pytest.raises(ValueError, match="filter"):
            client.runs("score>")
        with pytest.raises(callboard.Rejected):
            client.run("01ARZ3NDEKTSV4RRFFQ69G5FAV")
        for odd in ("01ARZ3NDEKTSV4RRFFQ69G5FAV\nx", "../hosts", "?limit=1", "", "x/log", "é", None, 5):
            with pytest.raises(ValueError, match="must be the id of a run"):
                client.run(odd)  # type: ignore[arg-type]
        assert target.runs() == []


def test_space_around_an_id_is_ignored(target: Target) -> None:
    with callboard.init(algorithm="a", environment="e") as run, callboard.connect() as client:
        assert client.run(f" {run.id}\n").id == run.id


def test_series_of_many_runs_come_as_columns(target: Target) -> None:
    ids = []
    for seed in range(3):
        with callboard.init(algorithm="a", environment="e", seed=seed, name=f'"{seed}",\nx') as run:
            for step in range(10):
                values = {"loss/policy": seed + step / 10, "loss/value": math.nan}
                run.log(values, agent_steps=step, frames=4 * step)
            run.episode(float(seed), 5)
        ids.append(run.id)
    with callboard.connect() as client:
        runs = client.runs("algorithm:a", sort="seed")
        series = runs.series("loss/policy", "rollout/episode_return")
        assert len(series) == 33
        assert set(series.metric.tolist()) == {"loss/policy", "rollout/episode_return"}
        assert list(series.by_run()) == ids
        second = series.by_run()[str(ids[1])]
        policy = second.metric == "loss/policy"
        np.testing.assert_array_equal(second.value[policy], 1 + np.arange(10) / 10)
        np.testing.assert_array_equal(second.agent_steps[policy], np.arange(10))
        np.testing.assert_array_equal(second.frames[policy], 4 * np.arange(10))
        frame = series.to_pandas()
        assert list(frame.columns) == list(series.columns())
        assert frame[frame.metric == "rollout/episode_return"].value.tolist() == [0.0, 1.0, 2.0]
        assert np.isnan(runs[0].series("loss/value").value).all()
        message = r"none of the runs has 'rollout/epsode_return'; close to it: rollout/episode_return"
        for of in (runs, runs[1]):
            with pytest.raises(ValueError, match=message):
                of.series("loss/policy", "rollout/epsode_return")
        with pytest.raises(ValueError, match="'x'; there are loss/policy, loss/value, rollout/episode_"):
            runs.series("x")
        assert len(client.runs("algorithm:b").series("loss/policy")) == 0
        assert set(runs.series().metric.tolist()) >= {"loss/policy", "loss/value", "rollout/episode_return"}


def test_metric_of_a_run_that_has_not_finished_may_come_later(target: Target) -> None:
    with callboard.connect() as client:
        with callboard.init(algorithm="a", environment="e", seed=1) as run:
            run.log({"loss/policy": 1.0}, agent_steps=1)
            assert run.flush(PATIENCE_S)
            live = client.run(str(run.id))
            assert len(live.series("loss/value")) == 0
            run.close("stopped")
        assert len(live.refresh().series("loss/value")) == 0
        with callboard.init(algorithm="a", environment="e", seed=2) as empty:
            pass
        assert len(client.run(str(empty.id)).series("loss/value")) == 0


def test_series_asks_for_its_metrics_and_sources_only(target: Target, proxy: Proxy) -> None:
    metrics = [f"many/{at:03} é" for at in range(120)]
    ids = []
    for seed in (1, 2):
        with callboard.init(algorithm="a", environment="e", seed=seed) as run:
            run.log({metric: seed * at for at, metric in enumerate(metrics)}, agent_steps=1)
            run.log({"other/x": 1.0}, agent_steps=1)
        ids.append(str(run.id))
    asked: list[str] = []
    proxy.answer = lambda path, body: asked.append(path)
    with callboard.connect(
        proxy.url, target.client.headers["Authorization"].removeprefix("Bearer ")
    ) as client:
        series = client.runs("algorithm:a", sort="seed").series(*reversed(metrics), metrics[0])
    exports = [httpx.URL(path).params for path in asked if "/export" in path]
    assert [params.get_list("metric") for params in exports] == [metrics[:50], metrics[50:100], metrics[100:]]
    assert {params["format"] for params in exports} == {"npz"}
    assert {params["sources"] for params in exports} == {"false"}
    assert series.run.tolist() == [run for run in ids for _ in metrics]
    assert series.metric.tolist() == metrics * 2
    assert series.value.tolist() == [seed * at for seed in (1, 2) for at in range(120)]


def test_stream_yields_every_point_once_and_ends_with_the_run(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_CATCH_UP_S", math.inf)  # by events alone
    run = callboard.init(algorithm="a", environment="e")
    run.log({"loss/policy": 0.0, "loss/value": 9.0}, agent_steps=0)
    assert run.flush(PATIENCE_S)
    seen = []
    step = 0
    with callboard.connect() as client:
        for change in client.run(str(run.id)).stream("loss/policy", "rollout/episode_return"):
            seen.append(change)
            if isinstance(change, callboard.NewPoints):
                if step == 6:
                    run.close()
                    continue
                step += 1
                # Two points at one time, in separate batches.
                for value in (step, step + 0.5):
                    run.log({"loss/policy": value}, agent_steps=step)
                    assert run.flush(PATIENCE_S)
    assert [c.state for c in seen if isinstance(c, callboard.StateChange)] == ["running", "finished"]
    points = [change for change in seen if isinstance(change, callboard.NewPoints)]
    assert {change.metric for change in points} == {"loss/policy"}
    values = np.concatenate([change.value for change in points]).tolist()
    assert values == [0.0, *(step + half for step in range(1, 7) for half in (0.0, 0.5))][: len(values)]
    assert len(values) == 13
    assert {change.points_per_value for change in points} == {1}


def test_stream_yields_what_is_logged_again_after_a_rewind(target: Target) -> None:
    """Points at agent steps that were yielded before the rewind are others now."""
    with callboard.init(algorithm="a", environment="e") as run:
        for step in range(6):
            run.log({"loss/policy": step, "loss/value": step}, agent_steps=step)
        run_id = str(run.id)
        assert run.flush(PATIENCE_S)
        seen: dict[str, list[tuple[int, float]]] = {"loss/policy": [], "loss/value": []}
        again = None
        with callboard.connect() as client:
            for change in client.run(run_id).stream():
                if not isinstance(change, callboard.NewPoints):
                    continue
                seen[change.metric] += zip(change.agent_steps.tolist(), change.value.tolist(), strict=True)
                if again is None and all(len(points) == 6 for points in seen.values()):
                    run.close()
                    again = callboard.init(id=run_id, rewind_to=2)
                    again.log({"loss/policy": 30.0}, agent_steps=3)
                    again.log({"loss/policy": 40.0}, agent_steps=4)
                    again.close()
    first = [(step, float(step)) for step in range(6)]
    assert seen == {"loss/policy": [*first, (3, 30.0), (4, 40.0)], "loss/value": first}


def test_stream_yields_every_recorded_episode_in_order(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where more were recorded than one page has."""
    monkeypatch.setattr("callboard.following._EPISODES_PER_REQUEST", 3)
    with callboard.init(algorithm="a", environment="e") as run:
        run_id = str(run.id)
    rows = [episode_row(run_id, agent_steps) for agent_steps in range(8)]
    ids = [row.id for row in rows]
    with writing(target.service.engine) as session:
        session.add_all(rows)
    with callboard.connect() as client:
        changes = [*client.run(run_id).stream()]
    assert [c.episode for c in changes if isinstance(c, callboard.RecordedEpisode)] == ids


def test_stream_and_series_keep_values_that_are_not_finite_apart(target: Target) -> None:
    values = [1.0, math.nan, math.inf, -math.inf, 2.0]
    with callboard.init(algorithm="a", environment="e") as run:
        for step, value in enumerate(values):
            run.log({"loss/policy": value}, agent_steps=step)
    with callboard.connect() as client:
        logged = client.run(str(run.id))
        changes = [change for change in logged.stream() if isinstance(change, callboard.NewPoints)]
        streamed = np.concatenate([change.value for change in changes])
        np.testing.assert_array_equal(streamed, values)
        np.testing.assert_array_equal(logged.series("loss/policy").value, values)


def test_stream_ends_though_the_event_of_the_end_is_lost(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.following._CATCH_UP_S", 0.1)
    run = callboard.init(algorithm="a", environment="e")
    states = []
    with callboard.connect() as client:
        for change in client.run(str(run.id)).stream():
            if isinstance(change, callboard.StateChange):
                states.append(change.state)
            if states == ["running"]:
                monkeypatch.setattr(Bus, "publish", lambda self, changes: None)
                run.close()
    assert states == ["running", "finished"]


def test_this_machines_installation_is_found(
    target: Target, spools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = target.service.url
    token = target.client.headers["Authorization"].removeprefix("Bearer ")
    for name in ("CALLBOARD_URL", "CALLBOARD_TOKEN"):
        monkeypatch.delenv(name)
    with pytest.raises(callboard.NotConfigured, match="callboard up"):
        callboard.connect()
    with pytest.raises(callboard.NotConfigured, match="http://"):
        callboard.connect("localhost:8642", token)
    with pytest.raises(callboard.NotConfigured, match="needs a token"):
        callboard.connect("http://example.org")
    home = spools.parent
    (home / "up.json").write_text(json.dumps({"pid": 1, "url": url}))
    (home / "command-line-key").write_text(token)
    with callboard.connect() as client:
        assert client.url == url
        assert len(client.runs()) == 0


def test_unreachable_server_is_reported() -> None:
    with (
        callboard.connect("http://127.0.0.1:9", "t") as client,
        pytest.raises(callboard.Unreachable, match="9"),
    ):
        client.runs()
