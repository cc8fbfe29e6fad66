"""What the client does besides logging: runs changed, compared and drawn, sweeps, studies, any request."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import callboard
from backend.specs.states import RunState
from tests.client.support import Target
from tests.support.rows import make_checkpoint, make_run

pytestmark = pytest.mark.service


def log(seed: int, returns: float, **fields: Any) -> str:
    with callboard.init(algorithm="a", environment="e", seed=seed, **fields) as run:
        for step in range(1, 5):
            run.episode(returns, 10, agent_steps=10 * step)
            run.log({"loss/policy": step}, agent_steps=10 * step)
    return str(run.id)


def test_run_is_described_tagged_archived_and_deleted(target: Target) -> None:
    run_id = log(3, 1.0, config={"lr": 0.1}, tags=["x"])
    with callboard.connect() as client:
        run = client.run(run_id)
        assert (run.algorithm, run.environment, run.seed, run.config) == ("a", "e", 3, {"lr": 0.1})
        assert (run.environment_config, run.group, run.tags) == ({}, None, ["x"])
        assert run.metrics() == ["loss/policy", "rollout/episode_length", "rollout/episode_return"]
        assert set(run.series().metric.tolist()) == set(run.metrics())
        assert run.tag("y", "z").tags == ["x", "y", "z"]
        assert run.untag("x").tags == ["y", "z"]
        assert run.update(name="mine", group="night").group == "night"
        assert [line["level"] for line in run.log()] == [line["level"] for line in run.log(last=1_000)]
        assert run.log("no such text") == []
        assert run.archive().data["archived"]
        assert len(client.runs()) == 0
        assert not run.archive(False).data["archived"]
        run.delete()
        with pytest.raises(callboard.Rejected, match="does not exist"):
            run.refresh()


def test_run_that_callboard_trains_is_resumed_forked_and_killed(target: Target, tmp_path: Path) -> None:
    stored = make_run(target.service.engine, RunState.STOPPED)
    checkpoint = make_checkpoint(target.service.engine, stored)
    (tmp_path / checkpoint.file).write_bytes(b"weights")
    target.service.artifacts.put(tmp_path / checkpoint.file, stored.id, "checkpoints")
    with callboard.connect() as client:
        run = client.run(stored.id)
        [listed] = run.checkpoints()
        assert (listed["id"], listed["agent_steps"]) == (checkpoint.id, 100)
        file = client.download(f"/checkpoints/{listed['id']}/file", tmp_path / "agent.pt")
        assert file.read_bytes() == b"weights"
        fork = run.fork(config={"beta": 0.5}, seed=5, name="bolder")
        assert (fork.name, fork.seed, fork.config["beta"]) == ("bolder", 5, 0.5)
        assert fork.data["parent_id"] == run.id
        assert run.resume(stop={"agent_steps": 20_000}) is run
        assert (run.state, run.data["spec"]["stop"]["agent_steps"]) == ("queued", 20_000)
        with pytest.raises(callboard.Rejected, match="queued"):
            run.resume()
        run.stop(kill=True)
        assert run.refresh().state == "stopped"
        with pytest.raises(ValueError, match="stop: must be limits"):
            run.resume(stop=5)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="config: must be settings"):
            run.fork(config="lr")  # type: ignore[arg-type]
        with pytest.raises(callboard.Rejected) as refused:
            run.fork(config={"nonsense": 1})
        assert set(refused.value.fields) == {"config.nonsense"}


def test_actions_on_several_runs_reach_the_others_when_one_is_refused(target: Target) -> None:
    ids = [log(seed, 1.0) for seed in range(2)]
    with callboard.connect() as client, callboard.init(algorithm="a", environment="e", seed=2) as running:
        runs = client.runs(sort="seed")
        assert runs.tag("t").untag("u")[0].tags == ["t"]
        with pytest.raises(callboard.Rejected, match=f"run {running.id}: ") as refused:
            runs.delete()
        assert refused.value.status == 409
        assert [run.id for run in client.runs(archived="all")] == [running.id]
        assert ids[0] not in [run.id for run in client.runs(archived="all")]


def test_tables_of_runs_have_what_varies(target: Target) -> None:
    for seed, lr in ((0, 0.1), (1, 0.1), (0, 1)):
        log(seed, 10.0 * lr, config={"lr": lr, "gamma": 0.9, "net": [64, 64] if seed else "small"})
    with callboard.connect() as client:
        runs = client.runs(sort="created_at")
        frame = runs.to_pandas()
        assert list(frame["config.lr"]) == [0.1, 0.1, 1.0]
        assert list(frame["config.net"]) == ["small", "[64, 64]", "small"]
        assert "config.gamma" not in frame.columns
        assert list(frame["seed"]) == [0, 1, 0]
        assert {*frame["algorithm"], *frame["environment"]} == {"a", "e"}
        merged = runs.series("loss/policy").to_pandas().merge(runs.to_pandas(), on="run")
        assert merged.groupby("config.lr").value.count().tolist() == [8, 4]
        assert client.runs("tag:none").to_pandas().empty


def test_exports_have_their_format_by_the_ending_of_the_file(target: Target, tmp_path: Path) -> None:
    for seed in range(2):
        log(seed, 1.0)
    with callboard.connect() as client:
        runs = client.runs()
        with runs.export(tmp_path / "points.csv", "loss/policy").open() as file:
            rows = list(csv.DictReader(file))
        assert {row["run"] for row in rows} == {run.id for run in runs}
        assert {row["metric"] for row in rows} == {"loss/policy"}
        assert {(row["run"], row["algorithm"], row["seed"]) for row in rows} == {
            (run.id, "a", str(run.seed)) for run in runs
        }
        with np.load(runs[0].export(tmp_path / "points.npz")) as arrays:
            assert arrays["metric"].tolist() == runs[0].metrics()
        with pytest.raises(ValueError, match=r"file: must end in \.csv, \.parquet, \.npz, \.zip: got"):
            runs.export(tmp_path / "points.xlsx")
        with pytest.raises(callboard.Rejected, match="does not exist"):
            callboard.Run(client.transport, {"id": "0" * 26}).export(tmp_path / "none.csv")
        assert not (tmp_path / "none.csv").exists()
        assert not list(tmp_path.glob(".*")), "nothing of a refused export is left"


def test_comparison_has_the_verdict_as_data(target: Target) -> None:
    better = [log(seed, 100.0 + seed, config={"lr": 0.1}) for seed in range(4)]
    worse = [log(seed, 10.0 + seed, config={"lr": 0.2}) for seed in range(4)]
    few = [log(0, 50.0, config={"lr": 0.3}), log(1, 51.0, config={"lr": 0.3})]
    with callboard.connect() as client:
        comparison = client.runs().compare()
        assert {group.n for group in comparison.groups} == {4, 2}
        [verdict] = client.compare(better + worse).verdicts
        assert (verdict.better, verdict.is_decided) == (verdict.a, True)
        assert set(verdict.a.runs) == set(better)
        assert verdict.p == pytest.approx(2 / 70)
        assert verdict.probability == 1.0
        assert verdict.difference.value == pytest.approx(90.0)
        assert " is better than " in str(verdict)
        [undecided] = client.compare(better + few).verdicts
        assert undecided.better is None
        assert undecided.seeds_needed is not None
        assert "not decided" in str(undecided)
        assert comparison.group_of(few[0]).n == 2
        with pytest.raises(KeyError):
            comparison.group_of("x")
        with pytest.raises(callboard.Rejected, match="run"):
            client.compare([])


def test_figures_come_as_data_and_as_files(target: Target, tmp_path: Path) -> None:
    ids = [log(seed, 1.0 + seed) for seed in range(3)]
    with callboard.connect() as client:
        figure = client.figure("seed_curve", ids)
        assert figure["data"]
        assert figure["layout"]
        text = client.figure("curve", client.runs(), tmp_path / "c.csv", metric="loss/policy").read_text()
        assert text.startswith("number,series,")
        with pytest.raises(ValueError, match=r"file: must end in \.json"):
            client.figure("seed_curve", ids, tmp_path / "c.pdf")
        with pytest.raises(callboard.Rejected):
            client.figure("no_such_figure", ids)
        with pytest.raises(ValueError, match="kind: must be the name of a figure"):
            client.figure("../hosts", ids)
        with pytest.raises(ValueError, match="runs: must be a list"):
            client.figure("seed_curve", ids[0])


def test_sweeps_are_started_waited_for_and_read(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.experiments._POLL_S", 0.001)
    with callboard.connect() as client:
        sweep = client.sweep(
            "paac",
            "CartPole-v1",
            {"learning_rate": [0.001, 0.01], "config.beta": np.array([0.01])},
            config={"n_e": 8},
            stop={"agent_steps": 1_000},
            max_seeds=2,
        )
        assert (sweep.state, sweep.data["spec"]["racing"]) == ("running", None)
        assert [row["settings"]["config.learning_rate"] for row in sweep.configurations] == [0.001, 0.01]
        assert (sweep.best, sweep.has_ended) == (None, False)
        assert {run.config["n_e"] for run in sweep.runs()} == {8}
        assert [known.id for known in client.sweeps()] == [sweep.id]
        with pytest.raises(TimeoutError, match="has not ended after 0 s"):
            sweep.wait(0)
        sweep.stop()
        assert client.sweeps(sweep.id)[0].wait().state == "stopped"
        with pytest.raises(callboard.Rejected) as refused:
            client.sweep("paac", "CartPole-v1", {"nonsense": [1]}, stop={"agent_steps": 1_000})
        assert any("nonsense" in field for field in refused.value.fields)
        cases: list[tuple[dict[str, Any], str]] = [
            ({"space": {"beta": 0.1}}, "beta: must be a list"),
            ({"space": ["beta"]}, "space: must be settings with their values, such as"),
            ({"config": 5}, "config: must be settings, such as"),
            ({"stop": 5}, "stop: must be limits, such as"),
            ({"run": "cpu"}, "run: must be fields, such as"),
            ({"max_seeds": "2"}, "max_seeds: "),
        ]
        for changes, message in cases:
            wrong: dict[str, Any] = {"space": {"beta": [0.1]}, "stop": {"agent_steps": 1_000}} | changes
            with pytest.raises(ValueError, match=f"^{message}"):
                client.sweep("paac", "CartPole-v1", **wrong)
        own = client.sweep("mine", "CartPole-v1", {"lr": [0.1, 0.2]}, max_seeds=1, run={"origin": "external"})
        assert (own.data["algorithm"], len(own.runs())) == ("mine", 0)
        with pytest.raises(ValueError, match="id: must be the id of a sweep"):
            client.sweeps("../runs")


def test_studies_are_started_waited_for_and_read(target: Target) -> None:
    body = {
        "name": "methods",
        "arms": [{"label": "PAAC", "algorithm": "paac", "config": {"n_e": 4}}],
        "environments": ["CartPole-v1"],
        "draws": {"n": 2},
        "run": {"stop": {"agent_steps": 10_000}},
        "figures": [{"id": "scores", "title": "Scores", "kind": "table"}],
    }
    with callboard.connect() as client:
        study = client.study(study=body)
        assert (study.name, study.state) == ("methods", "running")
        assert [cell["seed"] for cell in study.cells()] == [0, 1]
        assert client.studies(study.id)[0].stop().wait().state == "stopped"
        study.refresh().delete()
        assert client.studies() == []


def test_any_request_can_be_sent(target: Target) -> None:
    with callboard.connect() as client:
        assert client.hosts() == client.request("get", "/hosts")["items"] == []
        estimate = {"algorithm": "paac", "environment": "CartPole-v1", "stop": {"agent_steps": 1_000}}
        assert client.request("POST", "/api/v1/runs/estimate", body=estimate)
        with pytest.raises(callboard.Rejected) as refused:
            client.request("GET", "runs/01ARZ3NDEKTSV4RRFFQ69G5FAV")
        assert (refused.value.status, refused.value.code) == (404, "run_not_found")
