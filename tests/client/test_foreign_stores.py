"""MLflow's stores and W&B's offline runs become runs, read with their own packages if those are installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from callboard.imports import mlflow as mlflow_reader
from callboard.imports import wandb as wandb_reader
from callboard.imports.log import Log, UnreadableLog

OFFLINE = """
import sys, wandb
run = wandb.init(mode="offline", dir=sys.argv[1], project="p", name="first",
                 config={"env_id": "CartPole-v1", "seed": 4, "lr": 0.5, "net": {"layers": 2}})
for step in range(300):
    row = {"charts/episodic_return": float(step), "losses": {"value": 0.5}}
    run.log(row | ({"global_step": step * 10} if sys.argv[2] == "steps" else {}))
run.log({"text": "x" * 70_000, "nan": float("nan"), "hist": wandb.Histogram([1, 2, 3])})
run.finish()
"""


@pytest.mark.parametrize(
    ("module", "package"), [("mlflow", "mlflow.tracking"), ("wandb", "wandb.proto.wandb_internal_pb2")]
)
def test_missing_reader_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, package: str
) -> None:
    for name in (module, package):
        monkeypatch.setitem(sys.modules, name, None)
    reader = {"mlflow": mlflow_reader, "wandb": wandb_reader}[module]
    with pytest.raises(UnreadableLog, match=rf"pip install 'callboard-client\[{module}\]'"):
        list(reader.read(tmp_path))


def test_file_that_is_no_store_of_mlflow_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("text")
    with pytest.raises(UnreadableLog, match=r"neither a folder of MLflow's nor an SQLite file"):
        list(mlflow_reader.read(tmp_path / "a.db"))


def series(log: Log) -> dict[str, list[tuple[int, float]]]:
    return {
        metric: list(zip(column.agent_steps, column.value, strict=True))
        for metric, column in log.series.items()
    }


@pytest.mark.long
@pytest.mark.parametrize("store", ["mlruns", "mlflow.db"])
def test_runs_of_mlflow_keep_params_metrics_and_names(tmp_path: Path, store: str) -> None:
    tracking = pytest.importorskip("mlflow.tracking")
    root = tmp_path / store
    address = root.as_uri() if store == "mlruns" else f"sqlite:///{root}"
    if store == "mlruns":
        root.mkdir()
    client = tracking.MlflowClient(tracking_uri=address)
    experiment = client.create_experiment("pong", artifact_location=(tmp_path / "files").as_uri())
    for seed in range(2):
        run = client.create_run(experiment, run_name=f"seed {seed}", tags={"team": "a"})
        client.log_param(run.info.run_id, "seed", seed)
        client.log_param(run.info.run_id, "env_id", "CartPole-v1")
        for step in range(150):
            client.log_metric(run.info.run_id, "loss/a", step / 2, step=step * 10)
        client.log_metric(run.info.run_id, "rollout/ep_rew_mean", float("nan"), step=7)
        client.set_terminated(run.info.run_id)
    deleted = client.create_run(experiment)
    client.delete_run(deleted.info.run_id)
    logs = {log.name: log for log in mlflow_reader.read(root)}
    assert set(logs) == {"pong/seed 0", "pong/seed 1"}
    log = logs["pong/seed 1"]
    assert (log.seed, log.environment, log.config) == (1, "CartPole-v1", {"seed": 1, "env_id": "CartPole-v1"})
    assert series(log)["loss/a"] == [(step * 10, step / 2) for step in range(150)]
    assert [step for step, _ in series(log)["rollout/ep_rew_mean"]] == [7]
    assert "team: a" in [text for _, text in log.lines]


@pytest.mark.long
@pytest.mark.parametrize("counted", ["steps", "rows"])
def test_offline_runs_of_wandb_keep_config_history_and_steps(tmp_path: Path, counted: str) -> None:
    pytest.importorskip("wandb")
    environment = os.environ | {"WANDB_SILENT": "true", "WANDB_MODE": "offline"}
    subprocess.run([sys.executable, "-c", OFFLINE, str(tmp_path), counted], check=True, env=environment)
    [log] = wandb_reader.read(tmp_path)
    assert (log.name, log.seed, log.environment, log.problem) == ("first", 4, "CartPole-v1", None)
    assert (log.config["lr"], log.config["net"]) == (0.5, {"layers": 2})
    factor = 10 if counted == "steps" else 1
    assert log.step_unit == (None if counted == "steps" else "iterations")
    points = series(log)
    assert points["charts/episodic_return"] == [(step * factor, float(step)) for step in range(300)]
    assert points["losses.value"] == [(step * factor, 0.5) for step in range(300)]
    assert len(points["nan"]) == 1
    assert log.not_kept["values of the type histogram"] == 1
    [path] = tmp_path.rglob("run-*.wandb")
    whole = path.read_bytes()
    for content, n_least in ((whole[:20_000], 10), (whole[:9_000] + b"!" + whole[9_001:], 1)):
        path.write_bytes(content)
        [log] = wandb_reader.read(path)
        values = [value for _, value in series(log)["charts/episodic_return"]]
        assert values == [float(step) for step in range(len(values))]
        assert n_least <= len(values) < 300
    path.write_bytes(b"text")
    [log] = wandb_reader.read(path)
    assert log.problem is not None
