"""Scripts written for W&B log to the real service when their import alone is changed."""

import logging
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import callboard.wandb as wandb
from tests.client.support import Target
from tests.support.alerts import evaluate


@pytest.fixture(autouse=True)
def _finished() -> Iterator[None]:
    yield
    wandb.finish()


@pytest.mark.service
def test_script_of_wandb_changes_its_import_only(
    target: Target, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = SimpleNamespace(env_id="CartPole-v1", exp_name="ppo", seed=3, lr=0.5)
    run = wandb.init(
        project="cleanRL", entity="lab", config=vars(settings), name="first", group="g", tags=["x"],
        monitor_gym=True, save_code=True, settings=wandb.Settings(start_method="thread"),
    )  # fmt: skip
    assert (wandb.run, run.disabled) == (run, False)
    assert wandb.init() is run
    wandb.config.update({"late": [1, 2]}, allow_val_change=True)
    wandb.config.layers = 2
    wandb.config.setdefaults({"lr": 9.0, "gamma": 0.9})
    assert (wandb.config.lr, wandb.config["layers"], dict(wandb.config)["gamma"]) == (0.5, 2, 0.9)
    with pytest.raises(AttributeError, match="config has no setting 'nothing'"):
        _ = wandb.config.nothing
    wandb.define_metric("*", step_metric="global_step")
    wandb.watch(None)
    for step in range(3):
        wandb.log({"global_step": step * 100, "charts/episodic_return": np.float32(step)})
        wandb.log({"losses": {"value": 0.5, "deep": {"er": 1.5}}, "note": f"line {step}"}, commit=False)
        wandb.log({"hist": wandb.Histogram([1, 2]), "image": wandb.Image(np.zeros((2, 2)))})
    frames = np.zeros((3, 3, 16, 20), np.uint8)
    wandb.log({"video": wandb.Video(frames, caption="best", fps=10, format="gif"), "global_step": 300})
    (tmp_path / "model.pt").write_bytes(b"parameters")
    wandb.save(str(tmp_path / "*.pt"))
    run.summary["best"] = 2.0
    for _ in range(2):  # the second one is a line of the log only
        wandb.alert(title="slow", text="very")
    wandb.alert(title="slow", text="still", level=wandb.AlertLevel.ERROR, wait_duration=timedelta(0))
    table = wandb.Table(columns=["a"])
    table.add_data(1)
    wandb.log({"table": table, "weights": np.arange(100.0), "global_step": 300})
    assert run.n_not_kept == {"gradients": 1}
    wandb.finish()
    assert wandb.run is None
    [stored] = target.runs()
    assert (stored["name"], stored["state"], stored["seed"]) == ("first", "finished", 3)
    assert (stored["algorithm"], stored["environment"]) == ("ppo", "CartPole-v1")
    assert (stored["project"], set(stored["tags"])) == ("cleanRL", {"lab", "x"})
    assert (stored["step_unit"], stored["agent_steps"], stored["best_return"]) == ("agent_steps", 300, 2.0)
    config = stored["spec"]["config"]
    assert (config["lr"], config["late"], config["layers"], config["gamma"]) == (0.5, [1, 2], 2, 0.9)
    points = {
        metric: [(int(row["agent_steps"]), float(row["value"])) for row in rows]
        for metric, rows in target.points(stored["id"]).items()
    }
    assert points["charts/episodic_return"] == [(0, 0.0), (100, 1.0), (200, 2.0)]
    assert points["losses.deep.er"] == [(0, 1.5), (100, 1.5), (200, 1.5)]
    lines = target.lines(stored["id"])
    assert {"note: line 0", "summary best: 2.0", "slow: very", "video: best"} <= set(lines)
    assert [line for line in lines if line.startswith("slow")] == ["slow: very", "slow: very", "slow: still"]
    evaluate(target.service)
    alerts = target.client.get("/api/v1/alerts").json()["items"]
    raised = [(alert["title"], alert["text"], alert["level"], alert["agent_steps"]) for alert in alerts]
    assert raised == [("first: slow", "still", "error", 300), ("first: slow", "very", "warning", 300)]
    videos = target.client.get(f"/api/v1/runs/{stored['id']}/videos").json()["items"]
    assert [video["agent_steps"] for video in videos] == [300]
    media = target.client.get(f"/api/v1/runs/{stored['id']}/media").json()["items"]
    assert [(item["kind"], item["metric"], item["agent_steps"]) for item in media] == [
        ("histogram", "hist", [0, 100, 200]),
        ("histogram", "weights", [300]),
        ("image", "image", [0, 100, 200]),
        ("table", "table", [300]),
    ]
    files = target.client.get(f"/api/v1/runs/{stored['id']}/checkpoints").json()["items"]
    assert len(files) == 1
    wandb.log({"after": 1.0})
    assert [record.message for record in caplog.records if "wandb.log" in record.message] == [
        "callboard: wandb.log: it does nothing without a run: call wandb.init() first"
    ]


@pytest.mark.service
def test_environment_and_algorithm_that_settings_name_later_are_those_of_the_run(target: Target) -> None:
    script = Path(sys.argv[0]).stem
    run = wandb.init(name="later")
    run.config.update({"exp_name": "ppo", "env_id": "CartPole-v1"})
    run.log({"a": 1.0})
    run.finish()
    run = wandb.init(name="in parts", config={"env_id": "CartPole-v1"})
    run.config.exp_name = "ppo"
    run.finish()
    run = wandb.init(name="given", algorithm="mine", environment="e")
    run.config.update({"exp_name": "ppo", "env_id": "CartPole-v1"})
    run.finish()
    run = wandb.init(name="neither")
    run.log({"a": 1.0})
    run.finish()
    wandb.init(name="nothing logged").finish()
    stored = {run["name"]: (run["algorithm"], run["environment"]) for run in target.runs()}
    assert stored == {
        "later": ("ppo", "CartPole-v1"),
        "in parts": ("ppo", "CartPole-v1"),
        "given": ("mine", "e"),
        "neither": (script, "unknown"),
        "nothing logged": (script, "unknown"),
    }


@pytest.mark.service
@pytest.mark.parametrize("options", [{}, {"seed": 7}])
def test_seed_of_the_defaults_gives_way_to_the_one_that_comes_later(
    target: Target, options: dict[str, Any]
) -> None:
    for seed in range(3):
        run = wandb.init(config={"seed": 0, "lr": 0.5}, algorithm="a", environment="e", **options)
        run.config.update({"seed": seed}, allow_val_change=True)
        run.finish()
    expected = [7] * 3 if options else [0, 1, 2]
    assert sorted(stored["seed"] for stored in target.runs()) == expected


@pytest.mark.service
@pytest.mark.parametrize(
    ("options", "unit", "steps"),
    [({}, "iterations", [0, 1, 7, 7, 8]), ({"step_unit": "agent_steps"}, "agent_steps", [0, 1, 7, 7, 8])],
)
def test_step_is_the_row_unless_global_step_is_logged(
    target: Target, options: dict[str, Any], unit: str, steps: list[int]
) -> None:
    with wandb.init(algorithm="a", environment="e", **options) as run:
        run.log({"a": 1.0})
        run.log({"a": 2.0})
        run.log({"a": 3.0}, step=7)
        run.log({"a": 4.0}, step=7, commit=True)
        run.log({"a": 5.0, "b": None}, commit=False)
    [stored] = target.runs()
    assert (stored["state"], stored["step_unit"]) == ("finished", unit)
    assert [int(row["agent_steps"]) for row in target.points(stored["id"])["a"]] == steps


@pytest.mark.service
def test_global_step_that_comes_later_makes_the_steps_agent_steps(target: Target) -> None:
    run = wandb.init(algorithm="a", environment="e")
    run.log({"setup": 1.0})
    run.log({"global_step": 128, "loss": 1.0})
    run.log({"loss": 2.0})
    run.finish(exit_code=3)
    [stored] = target.runs()
    assert (stored["state"], stored["state_reason"]) == ("failed", "exit code 3")
    assert stored["step_unit"] == "agent_steps"
    points = target.points(stored["id"])
    assert [int(row["agent_steps"]) for row in points["loss"]] == [128, 128]
    series = target.client.get(f"/api/v1/runs/{stored['id']}/series").json()["items"]
    assert {row["step_unit"] for row in series} == {"agent_steps"}


@pytest.mark.service
def test_run_resumed_by_its_id_continues_with_the_next_row(target: Target) -> None:
    with wandb.init(algorithm="a", environment="e") as run:
        for row in range(3):
            run.log({"a": row})
    with wandb.init(id=run.id) as resumed:
        assert resumed.step == 3
        resumed.log({"a": 3.0})
        resumed.log({"a": 4.0})
    assert resumed.external is not None
    assert resumed.external.n_dropped == 0
    points = [(int(row["agent_steps"]), float(row["value"])) for row in target.points(run.id)["a"]]
    assert points == [(row, float(row)) for row in range(5)]


@pytest.mark.service
def test_files_in_the_folder_of_a_run_are_stored_by_save(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = wandb.init(algorithm="a", environment="e")
    assert wandb.run is run
    folder = Path(wandb.run.dir)
    assert folder == tmp_path / "wandb" / str(run.id) / "files"
    (folder / "model.pt").write_bytes(b"parameters")
    wandb.save(str(folder / "*.pt"))
    wandb.finish()
    [file] = target.client.get(f"/api/v1/runs/{run.id}/checkpoints").json()["items"]
    assert target.client.get(f"/api/v1/checkpoints/{file['id']}/file").content == b"parameters"


def test_folder_of_a_run_is_temporary_where_the_current_folder_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wandb").write_text("a file of this name")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run = wandb.init(mode="disabled")
    folder = Path(run.dir)
    assert (folder.parent, folder.is_dir(), run.dir) == (tmp_path, True, str(folder))


def test_save_without_files_does_nothing() -> None:
    run = wandb.init(mode="disabled")
    wandb.save()
    run.save()
    assert run.n_not_kept == {}


@pytest.mark.service
def test_name_that_is_assigned_later_is_a_log_line(target: Target) -> None:
    run = wandb.init(algorithm="a", environment="e", name="first")
    assert wandb.run is run
    wandb.run.name = "second"
    assert (run.name, run.n_not_kept) == ("second", {"later names": 1})
    wandb.finish()
    assert target.run(run.id)["name"] == "first"
    assert "name: second" in target.lines(run.id)


@pytest.mark.service
def test_artifacts_are_accepted_and_counted(target: Target, tmp_path: Path) -> None:
    run = wandb.init(algorithm="a", environment="e")
    artifact = wandb.Artifact("model", type="model", metadata={"lr": 0.5})
    artifact.add_file(str(tmp_path / "model.pt"), name="model.pt")
    artifact.add_dir(str(tmp_path))
    artifact.add_reference("s3://bucket/model.pt")
    artifact.add(wandb.Table(columns=["a"]), "table")
    wandb.log_artifact(artifact, aliases=["best"])
    run.log_artifact(artifact)
    wandb.log({"artifact": artifact})
    assert run.n_not_kept == {"artifacts": 3}
    wandb.finish()
    assert target.run(run.id)["state"] == "finished"


@pytest.mark.service
def test_further_names_of_wandb_are_accepted_and_counted(target: Target) -> None:
    run = wandb.init(project="p", group="g", tags=["a"], algorithm="a", environment="e")
    assert (run.project, run.group, run.tags, run.path) == ("p", "g", ("a",), f"p/{run.id}")
    run.tags = (*run.tags, "b")
    assert not run.resumed
    run.mark_preempting()
    wandb.use_artifact("model:latest").download()
    wandb.log({"curve": wandb.plot.line(None, "x", "y"), "loss": 0.5})
    assert len(wandb.util.generate_id()) == 8
    assert run.n_not_kept == {"later tags": 1, "artifacts": 1, "plots": 1}
    wandb.finish()
    assert "tags: ('a', 'b')" in target.lines(run.id)


@pytest.mark.service
def test_empty_group_is_no_group(target: Target) -> None:
    wandb.init(algorithm="a", environment="e", group="").finish()
    [stored] = target.runs()
    assert (stored["state"], stored["group"]) == ("finished", None)


def test_disabled_run_logs_nothing_and_needs_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")
    run = wandb.init(config={"lr": 0.5})
    assert (run.disabled, run.id, run.url, wandb.config.lr) == (True, None, None, 0.5)
    wandb.log({"a": object()})
    wandb.log(3)  # type: ignore[arg-type]
    wandb.summary["x"] = 1
    wandb.config.lr = 0.1
    wandb.finish(1)
    with pytest.raises(ValueError, match="config: must be a mapping or a namespace: got 3"):
        wandb.init(config=3)


@pytest.mark.service
def test_nothing_that_is_logged_raises(target: Target, caplog: pytest.LogCaptureFixture) -> None:
    class Hostile:
        def __getattribute__(self, name: str) -> object:
            raise RuntimeError(name)

    caplog.set_level(logging.ERROR)
    run = wandb.init(algorithm="a", environment="e")
    for value in (None, Hostile(), wandb.Video(Hostile()), wandb.Video(np.zeros(3)), [1, 2], "x" * 20_000):
        wandb.log({"value": value, "kept": 1.0})
        wandb.log({Hostile(): value})  # type: ignore[dict-item]
    wandb.log([1])  # type: ignore[arg-type]
    wandb.log({"kept": 2.0}, step="nothing")
    run.finish()
    [stored] = target.runs()
    assert len(target.points(stored["id"])["kept"]) == 7
