"""What is dropped, here or by the server, is counted with its reason and said in the script at once."""

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import callboard
from callboard.runs import Runs
from tests.client.support import Answer, Intermittent, Proxy, Target
from tests.support.waiting import PATIENCE_S

pytestmark = [pytest.mark.service, pytest.mark.long]

ROOT = Path(__file__).parents[2]

DECREASES = "agent steps that decrease"
TOO_MANY = "a run cannot have more metrics"


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "callboard"]


def test_values_that_the_server_drops_are_counted_and_reported_once(
    target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        for step in (10, 9, 8):
            run.log({"a/b": step}, agent_steps=step)
        assert run.flush(PATIENCE_S)
        assert (run.n_dropped, run.dropped) == (2, {DECREASES: 2})
        run.episode(1.0, 1, agent_steps=10)
        run.episode(2.0, 1, agent_steps=5)
        run.log({"a/b": 7}, agent_steps=7)
        assert run.flush(PATIENCE_S)
        assert run.dropped == {DECREASES: 4}, "an episode is one"
    [message] = messages(caplog)
    assert "2 values, the first of a/b: it has reached 10 agent steps" in message
    assert f'callboard.init(id="{run.id}", rewind_to=...)' in message


def test_count_of_dropped_values_survives_an_answer_that_is_lost(target: Target, proxy: Proxy) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        run.log({"a/b": 1.0}, agent_steps=10)
        assert run.flush(PATIENCE_S)
        lost: list[str] = []

        def lose_first(path: str, body: bytes) -> Answer | None:
            if not path.endswith("/points") or lost:
                return None
            lost.append(path)
            return Answer(502, is_forwarded=True)

        proxy.answer = lose_first
        for step in (9, 8, 11):
            run.log({"a/b": 1.0}, agent_steps=step)
        assert run.flush(PATIENCE_S)
        assert (len(lost), run.n_dropped) == (1, 2)


def test_metrics_beyond_the_maximum_are_counted_and_episodes_always_have_room(
    target: Target, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("backend.external.separation.MAX_SERIES", 20)
    monkeypatch.setattr("backend.external.separation.MAX_ROLLOUT_SERIES", 3)
    with callboard.init(algorithm="a", environment="e") as run:
        run.log({f"n/m{at:02}": 1.0 for at in range(23)}, agent_steps=1)
        run.log({f"rollout/r{at}": 1.0 for at in range(4)}, agent_steps=1)
        for _ in range(3):
            run.episode(5.0, 10)
        assert run.flush(PATIENCE_S)
        assert run.dropped == {TOO_MANY: 4}
    stored = target.run(run.id)
    assert (stored["episodes"], stored["score"]) == (3, 5.0)
    assert sum("reported once" in message for message in messages(caplog)) == 1


def test_what_the_client_drops_is_counted_by_its_reason(
    target: Target, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("callboard.background.MAX_BUFFERED_ROWS", 10)
    monkeypatch.setattr("callboard.background.WRITE_INTERVAL_S", 3600.0)
    with callboard.init(algorithm="a", environment="e") as run:
        for step in range(13):
            run.log({"a/b": 1.0}, agent_steps=step)
        assert run.dropped == {"the buffer is full": 3}
    assert sum("the buffer is full" in message for message in messages(caplog)) == 1
    assert any("3: the buffer is full" in line for line in target.lines(run.id))


def test_settings_episodes_and_texts_have_room_when_points_have_filled_the_buffer(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.background.MAX_BUFFERED_ROWS", 10)
    monkeypatch.setattr("callboard.background.MAX_FURTHER_ROWS", 8)
    monkeypatch.setattr("callboard.background.WRITE_INTERVAL_S", 3600.0)
    with callboard.init(algorithm="a", environment="e") as run:
        for step in range(13):
            run.log({"a/b": 1.0}, agent_steps=step)
        run.config.update({"lr": 0.1})
        run.episode(5.0, 10, agent_steps=13)
        run.text("a text")
        run.log({"rollout/ep_rew_mean": 1.0}, agent_steps=14)
        run.log({"rollout/ep_rew_mean": 1.0, "a/b": 1.0}, agent_steps=15)
        assert run.dropped == {"the buffer is full": 5}
        run.log({f"rollout/{n}": 1.0 for n in range(5)}, agent_steps=16)
        assert run.dropped == {"the buffer is full": 10}, "this room has an end, too"
    points = target.points(run.id)
    assert (len(points["a/b"]), len(points["rollout/episode_return"])) == (10, 1)
    assert len(points["rollout/ep_rew_mean"]) == 1
    assert target.run(run.id)["spec"]["config"] == {"lr": 0.1}
    assert "a text" in target.lines(run.id)


FORKS = """
import os, sys, callboard
with callboard.init(algorithm="a", environment="e") as run:
    run.log({"a/b": 1.0}, agent_steps=1)
    child = os.fork()
    if not child:
        run.log({"a/b": 2.0}, agent_steps=2)
        run.episode(1.0, 1)
        print("child", run.n_dropped, flush=True)
        sys.exit(0)
    os.waitpid(child, 0)
    print("parent", run.n_dropped)
"""


def test_forked_child_warns_once_that_nothing_is_logged(target: Target) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "client")}
    # Python 3.12 and later warn of every fork beside threads.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["child 2", "parent 0"]
    address, line = done.stderr.splitlines()  # that of the run's page, once
    assert os.environ["CALLBOARD_URL"] in address
    assert "logged in a forked child process: log in the process that called init" in line
    [run] = target.runs()
    assert run["state"] == "finished"
    assert len(target.points(run["id"])["a/b"]) == 1


def test_run_is_not_sent_to_other_processes(target: Target) -> None:
    with (
        callboard.init(algorithm="a", environment="e") as run,
        pytest.raises(TypeError, match="log in the process that called init"),
    ):
        pickle.dumps(run)


def log_branch(run: callboard.ExternalRun, steps: range, branch: float) -> None:
    """A value at each step, and an episode at every second one."""
    for step in steps:
        run.log({"loss/a": step + branch}, agent_steps=step, frames=4 * step)
        if step % 20 == 0:
            run.episode(step + branch, 20, agent_steps=step)


def values(target: Target, run_id: str | None, metric: str) -> list[float]:
    return [float(row["value"]) for row in target.points(run_id)[metric]]


def test_run_continues_from_an_older_checkpoint_and_no_point_is_drawn_twice(
    target: Target, tmp_path: Path
) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"parameters")
    with callboard.init(algorithm="a", environment="e") as run:
        log_branch(run, range(0, 101, 10), 0.0)
        run.checkpoint(path, agent_steps=60)
        run.checkpoint(path, agent_steps=90)
    before = target.run(run.id)
    assert (before["episodes"], before["agent_steps"]) == (6, 100)
    with callboard.init(id=run.id, rewind_to=60) as resumed:
        assert resumed.agent_steps == 60
        rewound = target.run(run.id)
        assert (rewound["agent_steps"], rewound["frames"], rewound["episodes"]) == (60, 240, 4)
        assert (rewound["score"], rewound["best_return"]) == (30.0, 60.0)
        assert rewound["wall_time_s"] <= before["wall_time_s"]
        log_branch(resumed, range(70, 121, 10), 0.5)
    assert resumed.n_dropped == 0
    first, second = [*map(float, range(0, 61, 10))], [step + 0.5 for step in range(70, 121, 10)]
    assert values(target, run.id, "loss/a") == first + second
    assert values(target, run.id, "rollout/episode_return") == [0, 20, 40, 60, 80.5, 100.5, 120.5]
    stored = target.run(run.id)
    assert (stored["agent_steps"], stored["episodes"], stored["best_return"]) == (120, 7, 120.5)
    answer = target.client.get(f"/api/v1/runs/{run.id}/checkpoints").json()["items"]
    live = [checkpoint["agent_steps"] for checkpoint in answer if not checkpoint.get("superseded")]
    assert live == [60]
    assert any("continues from 60 agent steps" in line for line in target.lines(run.id))
    with callboard.init(id=run.id, rewind_to=0) as again:
        log_branch(again, range(0, 21, 10), 0.25)
    assert values(target, run.id, "loss/a") == [0.25, 10.25, 20.25], "from the beginning"


def test_point_at_step_0_alone_is_set_aside_when_the_run_begins_again(target: Target) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        pass
    for value in (1.0, 2.0):
        with callboard.init(id=run.id, rewind_to=0) as again:
            again.log({"loss/a": value}, agent_steps=0)
    assert values(target, run.id, "loss/a") == [2.0]
    rewinds = [line for line in target.lines(run.id) if "continues from" in line]
    assert len(rewinds) == 1, "nothing was kept aside at first"


@pytest.mark.parametrize(
    ("metric", "options", "rewound"),
    [
        ("charts/episodic_return", {}, (30.0, 60.0, 7)),
        ("mine/score", {"return_metric": "mine/score"}, (30.0, 60.0, 0)),
        ("rollout/ep_rew_mean", {}, (60.0, 60.0, 0)),
    ],
)
def test_rewound_run_is_scored_by_its_own_return_metric(
    target: Target, metric: str, options: dict[str, Any], rewound: tuple[float, float, int]
) -> None:
    with callboard.init(algorithm="a", environment="e", **options) as run:
        for step in range(0, 101, 10):
            run.log({metric: step}, agent_steps=step)
    with callboard.init(id=run.id, rewind_to=60):
        stored = target.run(run.id)
        assert (stored["return_metric"], stored["score"], stored["best_return"], stored["episodes"]) == (
            metric,
            *rewound,
        )


def test_rewinding_sets_aside_what_an_earlier_process_has_left_unsent(
    target: Target, intermittent: Intermittent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.background.LAST_RETRY_S", 0.2)
    monkeypatch.setattr("callboard.background.FIRST_RETRY_S", 0.1)
    with intermittent.running(), callboard.init(algorithm="a", environment="e") as run:
        log_branch(run, range(0, 51, 10), 0.0)
    with callboard.init(id=run.id) as killed:  # the server is away, and comes back after the end
        log_branch(killed, range(60, 101, 10), 0.0)
    with callboard.init(id=run.id, rewind_to=70) as resumed:
        assert resumed.agent_steps == 70
        log_branch(resumed, range(80, 101, 10), 0.5)
        with intermittent.running():
            assert resumed.flush(PATIENCE_S)
            resumed.close()
    assert values(target, run.id, "loss/a") == [0, 10, 20, 30, 40, 50, 60, 70, 80.5, 90.5, 100.5]
    assert (killed.n_dropped, resumed.n_dropped) == (0, 0)


def test_rewinding_needs_a_running_script(target: Target) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        pass
    body: dict[str, Any] = {"state": "finished", "rewind_to": 5}
    answer = target.client.post(f"/api/v1/runs/{run.id}/heartbeat", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "rewind_to"


def test_numbers_that_are_not_finite_are_words_over_rest(target: Target) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        pass

    def send(sequence: int, value: Any) -> int:
        series = {"metric": "a/b", "agent_steps": [sequence], "wall_time_s": [0.0], "value": [value]}
        body = {"source": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "sequence": sequence, "series": [series]}
        return target.client.post(f"/api/v1/runs/{run.id}/points", json=body).status_code

    accepted: list[Any] = [1, 2.5, "NaN", "Infinity", "-Infinity", None]
    assert [send(at, value) for at, value in enumerate(accepted, 1)] == [200] * len(accepted)
    refused: list[Any] = ["1.5", "inf", "nan", "+Infinity", "infinity", "", [], True]
    for value in refused:
        assert send(len(accepted) + 1, value) == 422, value
    assert [row["value"] for row in target.points(run.id)["a/b"]] == ["1", "2.5", "nan", "inf", "-inf", "nan"]


def test_waiting_for_a_lost_run_ends(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    states = iter(["running", "lost", "lost", "running", "lost"])
    with callboard.init(algorithm="a", environment="e") as run, callboard.connect() as client:
        followed = client.run(str(run.id))
        monkeypatch.setattr("callboard.runs._POLL_S", 0.001)
        seconds = [0.0]
        clock = SimpleNamespace(monotonic=lambda: seconds[0], sleep=time.sleep)
        monkeypatch.setattr("callboard.runs.time", clock)
        refresh = Runs.refresh

        def lose(self: Runs) -> Runs:
            refresh(self)
            seconds[0] += 1
            for run in self:
                run.data = run.data | {"state": next(states, "lost")}
            return self

        monkeypatch.setattr(Runs, "refresh", lose)
        assert followed.wait(PATIENCE_S, lost_for_s=1.5).state == "lost"
        assert next(states, None) is None, "not at once"
        with pytest.raises(TimeoutError):
            followed.wait(0.05, lost_for_s=None)


def test_sync_reports_what_the_server_drops(
    target: Target,
    intermittent: Intermittent,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("callboard.background.FIRST_RETRY_S", 0.01)
    with callboard.init(algorithm="a", environment="e") as run:
        for step in (3, 2, 1):
            run.log({"a/b": 1.0}, agent_steps=step)
    assert run.n_dropped == 0, "nothing is known yet"
    with intermittent.running():
        done = callboard.sync()
    assert (done.n_rows, done.n_dropped, done.problems) == (3, 2, [])
