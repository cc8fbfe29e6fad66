"""A trial of presets trains each run once, goes on after a stop, and writes the scores that count."""

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.specs.events import (
    AnyEvent,
    EndedEvent,
    EvaluationEvent,
    PointsEvent,
    ReportEvent,
    StartedEvent,
)
from benchmarks.__main__ import app
from benchmarks.trial import TABLE, Cell, cells, events_of, is_finished, spec_of, write_table
from workers.engine.training.event_log import EventLog

pytestmark = pytest.mark.long

CELL = Cell("paac", "Catch-v0", "full-frame", 3)
ARGUMENTS = ["--algorithm", "paac", "--environment", "Catch-v0", "--preset", "full-frame"]
SMALL = ["--set", "n_e=2", "--set", "n_w=1", "--set", "evaluation_episodes=1", "--agent-steps", "200"]


def report(agent_steps: int, mean: float | None) -> ReportEvent:
    return ReportEvent(
        agent_steps=agent_steps,
        frames=4 * agent_steps,
        updates=0,
        wall_time_s=agent_steps / 100,
        episodes=7,
        agent_steps_per_s=1.0,
        mean_return_100=mean,
        best_return=mean,
    )


def started(agent_steps: int) -> StartedEvent:
    return StartedEvent(
        time=0.0, device="cpu", pid=1, resumed_from=None, agent_steps=agent_steps, versions={}
    )


def evaluation(agent_steps: int, mean: float) -> EvaluationEvent:
    return EvaluationEvent(
        protocol="plain",
        agent_steps=agent_steps,
        frames=4 * agent_steps,
        wall_time_s=1.0,
        checkpoint="c",
        seed=0,
        returns=[mean, mean],
        lengths_frames=[1, 1],
        mean_return=mean,
    )


def points(agent_steps: int) -> PointsEvent:
    return PointsEvent(
        metric="m", agent_steps=[1, agent_steps], frames=[1, 1], wall_time_s=[1.0, 1.0], episodes=[0, 0],
        value=[0.0, 0.0],
    )  # fmt: skip


def write(run_folder: Path, attempt: int, *events: AnyEvent) -> None:
    log = EventLog(run_folder / "attempts" / str(attempt) / "events.log")
    for event in events:
        log.add(event)
    log.close()


def ended(state: str) -> EndedEvent:
    return EndedEvent.model_validate({"time": 0.0, "state": state, "reason": "", "traceback": None})


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / TABLE).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_scores_after_the_checkpoint_of_a_resume_do_not_count(tmp_path: Path) -> None:
    run_folder = tmp_path / CELL.folder
    write(run_folder, 1, started(0), report(100, None), points(150), report(200, -0.5), report(300, 9.0))
    assert not is_finished(run_folder)
    write(run_folder, 2, started(200), report(250, 0.5), evaluation(400, 0.25), ended("finished"))
    assert is_finished(run_folder)
    write_table(tmp_path, {CELL: spec_of(CELL, {}, {"agent_steps": 400})})
    evaluated = [(row["kind"], row["agent_steps"], row["mean_return"]) for row in rows(tmp_path)]
    assert evaluated == [("training", "200", "-0.5"), ("training", "250", "0.5"), ("plain", "400", "0.25")]
    assert {(row["preset"], row["seed"]) for row in rows(tmp_path)} == {("full-frame", "3")}


def test_stopped_run_is_not_finished_and_an_attempt_that_never_started_changes_nothing(
    tmp_path: Path,
) -> None:
    run_folder = tmp_path / CELL.folder
    write(run_folder, 1, started(0), report(100, 1.0), ended("stopped"))
    write(run_folder, 2)
    assert not is_finished(run_folder)
    assert [event for event in events_of(run_folder) if isinstance(event, ReportEvent)] == [report(100, 1.0)]


def test_seeds_come_last_and_learning_rates_are_annealed_as_in_the_whole_run() -> None:
    asked = cells("paac", ["Catch-v0", "ALE/Pong-v5"], ["a", "b"], [0, 1])
    assert [cell.seed for cell in asked] == [0] * 4 + [1] * 4
    spec = spec_of(CELL, {"n_e": 4}, {"agent_steps": 400})
    assert (spec.stop.agent_steps, spec.annealed_over_agent_steps, spec.seed) == (400, 10_000_000, 3)


def test_trial_trains_each_run_once_and_is_refused_in_a_folder_of_other_settings(tmp_path: Path) -> None:
    command = ["trial", str(tmp_path / "trial"), *ARGUMENTS]
    first = CliRunner().invoke(app, [*command, *SMALL])
    assert first.exit_code == 0, first.output
    scores = rows(tmp_path / "trial")
    assert [row["kind"] for row in scores if row["kind"] != "training"] == ["plain"]
    assert scores[-1]["agent_steps"] == "200"
    again = CliRunner().invoke(app, [*command, *SMALL])
    assert "1 of 1: paac-Catch-v0-full-frame-0: finished before" in again.output
    for _ in ("finished", "not finished"):
        other = CliRunner().invoke(app, [*command, *SMALL, "--set", "t_max=4"])
        assert other.exit_code == 2
        assert "holds a run with other settings" in other.output
        log = tmp_path / "trial" / "paac-Catch-v0-full-frame-0" / "attempts" / "1" / "events.log"
        log.unlink(missing_ok=True)


def test_unknown_algorithm_and_preset_are_named(tmp_path: Path) -> None:
    for wrong, message in (
        (["--algorithm", "pac", "--environment", "Catch-v0", "--preset", "x"], "unknown algorithm"),
        (["--algorithm", "paac", "--environment", "Catch-v0", "--preset", "x"], "paac has no preset"),
    ):
        done = CliRunner().invoke(app, ["trial", str(tmp_path / "trial"), *wrong, "--agent-steps", "1"])
        assert done.exit_code == 2
        assert message in done.output
    assert not (tmp_path / "trial").exists()
