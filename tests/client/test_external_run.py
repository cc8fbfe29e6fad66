"""`callboard.init`: a script's own run, logged to the real service."""

import hashlib
import io
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

import callboard
from backend.db import Video
from backend.db.engine import reading
from backend.external.uploads import Uploads
from backend.platform.principals import Role
from backend.upkeep.backup.repository import named_files
from tests.client.support import NOBODY, Intermittent, Target
from tests.support.alerts import evaluate
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.service


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tags": "a,b"}, "tags: must be a list, such as [\"baseline\"]: got 'a,b'"),
        (
            {"tags": ["0a1b2c\n"]},
            "tags: must have no control characters, such as a line's end: got '0a1b2c\\n'",
        ),
        ({"tags": 5}, 'tags: must be a list, such as ["baseline"]: got 5'),
        ({"tags": {"a": 1}}, "tags: must be a list, such as [\"baseline\"]: got {'a': 1}"),
        ({"seed": 1.5}, "seed: must be a whole number from 0 to 2**63 - 1: got 1.5"),
        ({"config": [1]}, "config: must be a mapping or a namespace: got [1]"),
    ],
)
def test_wrong_argument_of_init_creates_no_run(target: Target, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        callboard.init(algorithm="a", environment="e", **wrong)
    assert target.runs() == []


@pytest.mark.parametrize(
    "seed", [0, 5, 5.0, "5", np.int64(7), np.float32(8), 2**53 + 1, 2**63 - 1, str(2**63 - 1)]
)
def test_seed_is_any_whole_number_below_2_to_the_63(target: Target, seed: Any) -> None:
    with callboard.init(algorithm="a", environment="e", seed=seed) as run:
        pass
    assert target.run(run.id)["seed"] == int(seed)


@pytest.mark.parametrize(
    "seed",
    [-1, 2**63, 2.0**63, 1.5, math.nan, math.inf, "1.5", "-1", "", "x", b"1", [1], True, np.array([1, 2])],
)
def test_other_seeds_are_errors(seed: Any) -> None:
    with pytest.raises(ValueError, match=r"^seed: must be a whole number from 0 to 2\*\*63 - 1: got "):
        callboard.init(algorithm="a", environment="e", seed=seed, url=NOBODY, token="t")


def test_address_of_the_page_is_printed_and_shown(target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    with callboard.init("a <b>", algorithm="a", environment="e") as run:
        address = f"{target.service.url}/runs/{run.id}"
        assert capsys.readouterr().err == f"callboard: a <b>: {address}\n"
        assert repr(run) == f"<ExternalRun 'a <b>' {address}>"
        assert run._repr_html_() == f'<a href="{address}" target="_blank">a &lt;b&gt;</a>'
    with callboard.init("b", algorithm="a", environment="e", url=NOBODY, token="t") as other:
        assert (repr(other), other._repr_html_()) == ("<ExternalRun 'b' not sent yet>", "b")


def test_run_shows_what_was_logged(target: Target, spools: Path) -> None:
    with callboard.init(
        name="mine",
        algorithm="my_ppo",
        environment="CartPole-v1",
        config={"learning_rate": 0.1, "net": {"layers": (64, 64)}, "device of mine": object},
        seed=3,
        project="mine of June",
        group="all",
        tags=["a"],
    ) as run:
        for step in range(20):
            run.log({"loss/policy": step / 4, "bare": -1}, agent_steps=step, frames=4 * step)
        run.episode(return_=20.0, length=12)
        run.episode(22.5, 9)
        run.text("half-way")
        run.text("sample", "the answer is\n42", agent_steps=np.int64(19))
    stored = target.run(run.id)
    assert (stored["origin"], stored["state"], stored["name"]) == ("external", "finished", "mine")
    assert (stored["algorithm"], stored["environment"], stored["seed"]) == ("my_ppo", "CartPole-v1", 3)
    assert (stored["project"], stored["group"], stored["tags"]) == ("mine of June", "all", ["a"])
    assert stored["spec"]["config"] == {
        "learning_rate": 0.1,
        "net.layers": [64, 64],
        "device of mine": "<class 'object'>",
    }
    points = target.points(run.id)
    assert [float(row["value"]) for row in points["loss/policy"]] == [step / 4 for step in range(20)]
    assert [int(row["agent_steps"]) for row in points["loss/policy"]] == list(range(20))
    assert [int(row["frames"]) for row in points["loss/policy"]] == [4 * step for step in range(20)]
    assert len(points["bare"]) == 20
    assert [float(row["value"]) for row in points["rollout/episode_return"]] == [20.0, 22.5]
    # Of the sum of lengths and the agent steps logged before, the greater.
    assert [int(row["agent_steps"]) for row in points["rollout/episode_return"]] == [19, 21]
    assert [int(row["frames"]) for row in points["rollout/episode_return"]] == [76, 84], "as those of log"
    assert "half-way" in target.lines(run.id)
    log = target.client.get(f"/api/v1/runs/{run.id}/log").json()["items"]
    texts = [(line["message"], line["agent_steps"]) for line in log if line["message"].startswith("sample")]
    assert texts == [("sample: the answer is\n42", 19)]
    assert list(spools.iterdir()) == [], "what the server has stored is deleted"


def test_alert_is_a_line_of_the_log_and_in_the_inbox_once(target: Target) -> None:
    with callboard.init(algorithm="a", environment="e", name="night") as run:
        run.log({"loss": 1.0}, agent_steps=500)
        run.alert("collapse " + "x" * 300, "entropy\x00 <b>\n" + "y" * 5_000, level="error")
        run.alert("late", agent_steps=400)
    assert run.n_changed == 2
    evaluate(target.service)
    late, long = target.client.get("/api/v1/alerts", params={"run": run.id}).json()["items"]
    assert (late["title"], late["text"], late["level"]) == ("night: late", "", "warning")
    assert late["agent_steps"] == 400
    assert (long["kind"], long["level"], long["agent_steps"]) == ("script", "error", 500)
    assert len(long["title"]) == 255
    assert long["title"].startswith("night: collapse xxx")
    assert len(long["text"]) == 4_096
    assert [line.partition(":")[0][:8] for line in target.lines(run.id)].count("collapse") == 1


def test_values_that_are_not_finite_arrive(target: Target) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        for step, value in enumerate([1.0, math.nan, math.inf, -math.inf]):
            run.log({"loss/policy": value}, agent_steps=step)
    values = [float(row["value"] or "nan") for row in target.points(run.id)["loss/policy"]]
    assert [math.isfinite(value) for value in values] == [True, False, False, False]


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (
            ZeroDivisionError("first line\nno more gradients"),
            "failed",
            "ZeroDivisionError: no more gradients",
        ),
        (KeyboardInterrupt(), "stopped", "interrupted from the keyboard (SIGINT)"),
        (SystemExit(3), "failed", "exit status 3"),
        (SystemExit("no data"), "failed", "no data"),
        (SystemExit(0), "finished", None),
    ],
)
def test_state_of_a_run_that_ends_with_an_exception(
    target: Target, error: BaseException, state: str, reason: str | None
) -> None:
    with pytest.raises(type(error)), callboard.init(algorithm="a", environment="e") as run:  # noqa: PT012
        run.log({"loss/policy": 1.0}, agent_steps=1)
        raise error
    stored = target.run(run.id)
    assert stored["state"] == state
    assert reason is None or stored["state_reason"] == reason
    assert len(target.points(run.id)["loss/policy"]) == 1, "sent before the end"


def test_resumed_run_continues(target: Target) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        run.log({"loss/policy": 1.0}, agent_steps=10)
    before = target.run(run.id)
    with callboard.init(id=run.id) as resumed:
        assert target.run(run.id)["state"] == "running"
        resumed.episode(5.0, 3)
        resumed.log({"loss/policy": 2.0}, agent_steps=20)
    assert resumed.name == before["name"]
    points = target.points(run.id)
    assert [int(row["agent_steps"]) for row in points["loss/policy"]] == [10, 20]
    assert [int(row["agent_steps"]) for row in points["rollout/episode_return"]] == [13]
    assert float(points["loss/policy"][1]["wall_time_s"]) >= before["wall_time_s"]
    assert target.run(run.id)["state"] == "finished"


def test_run_resumed_with_a_token_that_may_only_write_goes_on_where_it_was(target: Target) -> None:
    created = target.client.post("/api/v1/tokens", json={"name": "script", "scope": "external_runs"})
    token = created.raise_for_status().json()["token"]
    with callboard.init(algorithm="a", environment="e", token=token) as run:
        run._started_at -= 5.0  # noqa: SLF001 - as after some training
        run.log({"loss/policy": 0.5}, agent_steps=10)
    before = target.run(run.id)["wall_time_s"]
    assert before >= 5.0
    with callboard.init(id=run.id, token=token) as again:
        again.episode(5.0, 3)
    [row] = target.points(run.id)["rollout/episode_return"]
    assert int(row["agent_steps"]) == 13
    assert float(row["wall_time_s"]) >= before


def test_stop_on_the_page_is_seen_by_the_script(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.background.HEARTBEAT_INTERVAL_S", 0.1)
    with callboard.init(algorithm="a", environment="e") as run:
        assert not run.stop_requested
        target.client.post(f"/api/v1/runs/{run.id}/stop").raise_for_status()
        until(lambda: run.stop_requested)
        run.close("stopped", "stopped on the page")
    assert target.run(run.id)["state"] == "stopped"


def test_wrong_use_of_init_is_an_error_that_names_the_argument(target: Target) -> None:
    for arguments in ({"environment": "e"}, {"algorithm": "a"}):
        with pytest.raises(ValueError, match=r"algorithm|environment"):
            callboard.init(**arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="id"):
        callboard.init("name", id="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    with pytest.raises(ValueError, match="id: cannot be combined"):
        callboard.init(id="01ARZ3NDEKTSV4RRFFQ69G5FAV", tags=["baseline"])
    with pytest.raises(ValueError, match="rewind_to: needs id"):
        callboard.init(algorithm="a", environment="e", rewind_to=5)
    with pytest.raises(ValueError, match="rewind_to: must be agent steps"):
        callboard.init(id="01ARZ3NDEKTSV4RRFFQ69G5FAV", rewind_to=-1)


def test_agent_steps_that_go_back_are_dropped_and_logged(target: Target) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        for step in (1, 5, 3, 6):
            run.log({"loss/policy": 1.0}, agent_steps=step)
    assert [int(row["agent_steps"]) for row in target.points(run.id)["loss/policy"]] == [1, 5, 6]
    assert any("dropped" in line for line in target.lines(run.id))


def test_server_that_refuses_the_run_is_an_error_at_init(
    target: Target, spools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as careless:
        careless.setattr("callboard.starting.MAX_NAME", 1_000)
        with pytest.raises(callboard.Rejected, match="name"):
            callboard.init("x" * 1_000, algorithm="a", environment="e")
    with target.service.client_as(Role.VIEWER) as viewer:
        token = viewer.headers["Authorization"].removeprefix("Bearer ")
        with pytest.raises(callboard.Rejected):
            callboard.init(algorithm="a", environment="e", token=token)
    with pytest.raises(callboard.Rejected):
        callboard.init(algorithm="a", environment="e", token="wrong")
    with pytest.raises(callboard.Rejected):
        callboard.init(id="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert list(spools.iterdir()) == []
    assert target.runs() == []
    monkeypatch.delenv("CALLBOARD_TOKEN")
    with pytest.raises(callboard.NotConfigured, match="CALLBOARD_TOKEN"):
        callboard.init(algorithm="a", environment="e")


def test_checkpoint_is_stored_unchanged(target: Target, spools: Path, tmp_path: Path) -> None:
    path = tmp_path / "model v2.ZIP"
    content = np.random.default_rng(1).bytes(3 * 2**20 + 7)  # in four parts
    path.write_bytes(content)
    with callboard.init(algorithm="a", environment="e") as run:
        run.log({"loss/policy": 1.0}, agent_steps=7)
        run.checkpoint(path, score=3.5)
        path.write_bytes(b"changed afterwards")
        run.checkpoint(path, agent_steps=9)
        assert run.flush(timeout_s=PATIENCE_S)
        for wrong in (tmp_path, tmp_path / "none.pt"):
            run.checkpoint(wrong)
        run.checkpoint(path, score=math.nan)
        assert run.flush(timeout_s=PATIENCE_S)
        assert not list(spools.glob("*/*.file")), "what the server has stored is deleted"
    assert (run.n_dropped, run.n_changed, run.agent_steps) == (2, 1, 9)
    third, second, first = target.client.get(f"/api/v1/runs/{run.id}/checkpoints").json()["items"]
    assert (first["agent_steps"], first["score"], first["size_bytes"]) == (7, 3.5, len(content))
    assert (second["agent_steps"], second["score"]) == (9, None)
    assert (third["agent_steps"], third["score"]) == (9, None)
    assert first["sha256"] == hashlib.sha256(content).hexdigest()
    assert first["file"].endswith(".zip")
    downloads = [target.client.get(f"/api/v1/checkpoints/{row['id']}/file") for row in (first, second)]
    assert [answer.content for answer in downloads] == [content, b"changed afterwards"]


def test_checkpoint_that_the_server_refuses_is_counted(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.external.files.MAX_FILES", 1)
    path = tmp_path / "model.pt"
    path.write_bytes(b"parameters")
    with callboard.init(algorithm="a", environment="e") as run:
        for step in range(3):
            run.checkpoint(path, agent_steps=step)
        run.log({"loss/policy": 1.0}, agent_steps=3)
        assert run.flush(timeout_s=PATIENCE_S)
    assert run.n_dropped == 2
    assert len(target.client.get(f"/api/v1/runs/{run.id}/checkpoints").json()["items"]) == 1
    reason = "refused by the server: upload: is one too many: the run has 1 checkpoints, the maximum"
    assert any(f"2: {reason}" in line for line in target.lines(run.id)), "with the reason"
    assert run.dropped == {reason: 2}
    assert len(target.points(run.id)["loss/policy"]) == 1, "what follows is sent"


def test_checkpoint_survives_an_outage_and_a_server_that_loses_its_upload(
    target: Target, intermittent: Intermittent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.background.LAST_RETRY_S", 0.2)
    monkeypatch.setattr("callboard.background.FIRST_RETRY_S", 0.1)
    monkeypatch.setattr("callboard.uploading.PART_BYTES", 4)
    complete = Uploads.complete
    lost: list[str] = []

    def lose_first(self: Uploads, run_id: str, upload: str, size_bytes: int, sha256: str) -> Any:
        if not lost:
            lost.append(upload)
            self.remove(run_id, upload)
        return complete(self, run_id, upload, size_bytes, sha256)

    monkeypatch.setattr(Uploads, "complete", lose_first)
    path = tmp_path / "model.pt"
    path.write_bytes(b"parameters")
    with callboard.init(algorithm="a", environment="e") as run:
        run.checkpoint(path, agent_steps=1)
        assert not run.flush(timeout_s=0.2)
        with intermittent.running():
            assert run.flush(timeout_s=PATIENCE_S)
            run.close()
    [row] = target.client.get(f"/api/v1/runs/{run.id}/checkpoints").json()["items"]
    assert target.client.get(f"/api/v1/checkpoints/{row['id']}/file").content == b"parameters"
    assert (len(lost), run.n_dropped) == (1, 0)


def test_videos_are_sent_and_wait_for_a_worker(
    target: Target, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    frames = np.random.default_rng(1).integers(0, 256, (5, 32, 48, 3), np.uint8)
    movie, text = tmp_path / "movie.bin", tmp_path / "movie.mp4"
    movie.write_bytes(b"GIF89a and so on")
    text.write_bytes(b"this is no video")
    with callboard.init(algorithm="a", environment="e") as run:
        run.video(movie, agent_steps=5)
        given = frames.copy()
        run.video(given, agent_steps=9, fps=7)
        given[:] = 0  # afterwards
        for wrong in (text, tmp_path, frames[0], frames.astype(float), frames[:, :8], frames[:0]):
            run.video(wrong)
        assert run.flush(timeout_s=PATIENCE_S)
    assert run.n_dropped == 6
    lost = [line for line in target.lines(run.id) if line.startswith("A video was not sent: ")]
    reasons = (
        "is not a video: it must be an MP4, MOV, WebM, Matroska, AVI or GIF file",
        "must be a file",
        "frames must be uint8 of the shape (T, H, W, 3): got uint8 of the shape (32, 48, 3)",
        "frames must be uint8 of the shape (T, H, W, 3): got float64 of the shape (5, 32, 48, 3)",
        "pixels per side: got 5 of 48 x 8",
        "must have at least one frame",
    )
    for line, reason in zip(lost, reasons, strict=True):
        assert reason in line
        assert "full" not in line
    videos = target.client.get(f"/api/v1/runs/{run.id}/videos").json()["items"]
    assert [(video["agent_steps"], video["state"], video["error"]) for video in videos] == [
        (9, "queued", None),
        (5, "queued", None),
    ]
    assert target.client.get(f"/api/v1/videos/{videos[0]['id']}/file").status_code == 404
    assert videos[1]["size_bytes"] == movie.stat().st_size
    with reading(target.service.engine) as session:
        rows = session.scalars(select(Video).order_by(Video.agent_steps)).all()
        named = {file for _, kind, file, _ in named_files(session) if kind == "videos"}
    assert named == {row.sent for row in rows}, "backups have them"
    store = target.service.artifacts
    sent = [store.read(row.run_id, "videos", row.sent or "", row.sent_sha256) for row in rows]
    assert sent[0] == movie.read_bytes()
    with np.load(io.BytesIO(sent[1])) as archive:
        assert np.array_equal(archive["frames"], frames)
    assert [(row.form, row.fps) for row in rows] == [("file", None), ("frames", 7.0)]
    kinds = {row["kind"]: row for row in target.client.get("/api/v1/storage").json()["kinds"]}
    assert kinds["videos"]["n_bytes"] == sum(map(len, sent))
    target.client.delete(f"/api/v1/runs/{run.id}").raise_for_status()


def test_deleted_run_does_not_disturb_the_script(
    target: Target, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # A heartbeat would resume the run before it is deleted.
    monkeypatch.setattr("callboard.background.HEARTBEAT_INTERVAL_S", 3600.0)
    with callboard.init(algorithm="a", environment="e") as run:
        callboard.init(id=run.id).close()
        target.client.delete(f"/api/v1/runs/{run.id}").raise_for_status()
        run.log({"loss/policy": 1.0}, agent_steps=1)
        assert not run.flush(timeout_s=PATIENCE_S), "at once: nothing of it can ever be sent"
        run.log({"loss/policy": 2.0}, agent_steps=2)
        assert run.n_dropped == 2
    first, last = [record.getMessage() for record in caplog.records if record.name == "callboard"]
    assert "no longer accepts data for it" in first
    assert "what the server has refused is kept" in last


@pytest.mark.long
def test_outage_of_the_server_loses_nothing(
    target: Target, intermittent: Intermittent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.background.LAST_RETRY_S", 0.2)
    monkeypatch.setattr("callboard.background.FIRST_RETRY_S", 0.1)
    with callboard.init(algorithm="a", environment="e", name="offline") as run:
        assert run.id is None
        assert (run.name, run.url) == ("offline", None)
        run.log({"loss/policy": 0.0}, agent_steps=0)
        for step in range(1, 40, 10):
            with intermittent.running():
                assert run.flush(timeout_s=PATIENCE_S)
            for number in range(step, step + 10):
                run.log({"loss/policy": float(number)}, agent_steps=number)
            assert not run.flush(timeout_s=0.2)
        with intermittent.running():
            run.close()
    values = [float(row["value"]) for row in target.points(run.id)["loss/policy"]]
    assert values == [float(step) for step in range(41)]
    assert target.run(run.id)["state"] == "finished"
    assert len(target.runs()) == 1
