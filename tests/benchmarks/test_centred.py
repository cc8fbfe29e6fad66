"""The search around the preset with centred observations: its order, what it chooses, and its table."""

import csv
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.specs.events import AnyEvent, EvaluationEvent, ReportEvent
from benchmarks.centred import (
    COLUMNS,
    OTHERS,
    SCHEDULE,
    SEARCHED,
    TABLE,
    Result,
    Results,
    Variant,
    rank,
    result_of_events,
    run,
    variants,
)
from benchmarks.trial import Cell
from tests.support.waiting import until

pytestmark = pytest.mark.long

CHANGES = {"n_e": 2, "n_w": 1}
PROGRAM = (
    "import sys; from pathlib import Path; from benchmarks import centred; "
    "from tests.benchmarks.test_centred import tiny; "
    "sys.exit(len(centred.run(Path(sys.argv[1]), print, hours=1, plan=tiny)))"
)


def reached(agent_steps: int | None, mean: float = 0.0, training_s: float | None = None) -> Result:
    return Result(1, 1.0, mean, None, agent_steps, training_s, None, None)


def tiny(result_of: Results) -> Iterator[Variant]:
    """Two runs of a second, of which the later depends on the earlier, and one that fails."""
    first = Variant("tiny", Cell("paac", "Catch-v0", "full-frame", 0), CHANGES, {}, {"agent_steps": 400})
    yield first
    result = result_of(first)
    seed = 7 if result is not None and result.agent_steps == 400 else 8
    yield first._replace(cell=first.cell._replace(seed=seed), stop={"agent_steps": 5_000})
    yield first._replace(cell=first.cell._replace(preset="none"))


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / TABLE).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_search_keeps_what_is_fastest_and_goes_on_from_there() -> None:
    def result_of(variant: Variant) -> Result | None:
        n_e, constant = variant.changes.get("n_e"), variant.changes.get(SCHEDULE) == "constant"
        agent_steps = 400 - 200 * (n_e == 32) - 50 * constant
        quick = n_e == 8 or "min_training_batch" in variant.changes
        seconds = (300.0 if quick else 400.0) + 500 * (variant.part == "search")
        failed = variant.part == "search" and variant.changes.get("learning_rate") == 1.4e-3
        result = reached(agent_steps, 0.0, seconds)
        return None if failed else result._replace(evaluated_s=400.0 if "ga3c" in variant.cell else None)

    planned = list(variants(result_of))
    searched = [variant for variant in planned if variant.part in ("search", "search-n_e")]
    chosen = {SCHEDULE: "constant", "n_e": 8}
    assert dict(searched[-1].changes) == chosen | {"max_grad_norm": SEARCHED["max_grad_norm"][-1]}
    assert {str(dict(variant.changes)) for variant in planned if variant.part == "pong"} == {str(chosen)}
    games = [variant for variant in planned if variant.part == "games"]
    assert {(variant.cell.preset, bool(variant.changes)) for variant in games} == {
        ("full-frame", False), ("full-frame-centred", True)
    }  # fmt: skip
    others = [
        (variant.cell.algorithm, dict(variant.changes)) for variant in planned if variant.part == "others"
    ]
    assert others == [*[("a3c", {})] * 2, *[("ga3c", OTHERS["ga3c"][-1])] * 3], "two misses are enough"
    ids = [variant.folder for variant in planned if variant not in searched]
    assert len(ids) == len(set(ids)) == 3 + 12 + 5 + 6


def test_every_run_of_the_search_is_valid_and_differs_in_what_it_says() -> None:
    planned = list(variants(lambda variant: reached(100, 0.0, 100.0)))
    assert not any(variant.changes for variant in planned if variant.part == "pong"), "nothing was faster"
    specs = {(str(variant.changes), variant.cell): variant.spec for variant in planned}
    by_changes = {changes: spec for (changes, cell), spec in specs.items() if cell.algorithm == "paac"}
    annealed = by_changes[str({SCHEDULE: 2_000_000})]
    assert (annealed.annealed_over_agent_steps, annealed.config.model_dump()["n_e"]) == (2_000_000, 16)
    assert by_changes[str({SCHEDULE: "constant"})].config.model_dump()["learning_rate_schedule"] == "constant"
    assert all(
        spec.config.model_dump()["centre"] for (_, cell), spec in specs.items() if "centred" in cell.preset
    )


def test_runs_that_reach_the_target_come_before_those_that_miss_it_and_failed_ones() -> None:
    ordered = [reached(300), reached(600), reached(None, 17.0), reached(None, 16.0), None]
    assert sorted([*ordered[3:], *ordered[:3]], key=rank) == ordered
    slower, faster = reached(100, 0.0, 700.0), reached(300, 0.0, 300.0)
    assert rank(slower) < rank(faster)
    assert rank(slower, timed=True) > rank(faster, timed=True)


def test_result_has_the_first_times_at_which_the_target_was_reached() -> None:
    def report(agent_steps: int, mean: float | None) -> ReportEvent:
        return ReportEvent(
            agent_steps=agent_steps, frames=0, updates=0, wall_time_s=agent_steps / 10, episodes=1,
            agent_steps_per_s=1.0, mean_return_100=mean, best_return=mean,
        )  # fmt: skip

    def evaluation(agent_steps: int, mean: float) -> EvaluationEvent:
        return EvaluationEvent(
            protocol="noop_starts", agent_steps=agent_steps, frames=0, wall_time_s=agent_steps / 10,
            checkpoint="c", seed=0, returns=[mean], lengths_frames=[1], mean_return=mean,
        )  # fmt: skip

    events: list[AnyEvent] = [
        report(10, None), report(20, -3.0), evaluation(20, 17.9), report(30, 18.0), evaluation(30, 18.5),
        report(40, 17.0), evaluation(40, 16.0),
    ]  # fmt: skip
    assert result_of_events(events) == Result(40, 4.0, 17.0, 16.0, 30, 3.0, 30, 3.0)
    assert result_of_events([]) == Result(0, 0.0, None, None, None, None, None, None)


def test_killed_search_goes_on_and_has_a_row_for_each_run(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    log = tmp_path / "tiny" / "n_e-2-n_w-1" / "paac-Catch-v0-full-frame-7" / "attempts" / "1" / "events.log"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, process_group=0) as search:
        until(log.exists)
        os.kill(search.pid, signal.SIGKILL)
    assert [(row["seed"], row["agent_steps"]) for row in rows(tmp_path)] == [("0", "400")]
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 1, again.stdout + again.stderr
    assert "full-frame-0: load" not in again.stdout, "it has finished before"
    assert [(row["seed"], row["agent_steps"]) for row in rows(tmp_path)] == [
        ("0", "400"), ("7", "5000"), ("0", "failed")
    ]  # fmt: skip
    assert run(tmp_path, print, hours=0, plan=tiny) == []


def test_search_goes_on_from_its_table_alone_on_another_machine(tmp_path: Path) -> None:
    table, reports = tmp_path / "kept" / "table.csv", list[str]()
    assert [v.cell.preset for v in run(tmp_path / "a", print, hours=1, table=table, plan=tiny)] == ["none"]
    before = table.read_text("utf-8")
    assert len(run(tmp_path / "b", reports.append, hours=1, table=table, plan=tiny)) == 1
    assert [text.partition(":")[0] for text in reports if ": load" in text] == [
        "tiny/n_e-2-n_w-1/paac-Catch-v0-none-0"
    ]
    assert table.read_text("utf-8") == before


def test_rows_of_later_runs_are_kept_when_a_failed_one_is_tried_again(tmp_path: Path) -> None:
    later = Variant("tiny", Cell("paac", "Catch-v0", "full-frame", 1), {}, {}, {"agent_steps": 400})
    failing = later._replace(cell=later.cell._replace(preset="none"))
    with (tmp_path / TABLE).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [COLUMNS, (*failing.key, "failed"), (*later.key, 400, 1.5, "", 2.25, "", "", 300, 3.0)]
        )

    def plan(result_of: Results) -> Iterator[Variant]:
        yield failing
        raise KeyboardInterrupt  # before the later run is looked at

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, print, hours=1, plan=plan)
    assert [(row["preset"], row["agent_steps"], row["evaluation"]) for row in rows(tmp_path)] == [
        ("none", "failed", None), ("full-frame", "400", "2.25")
    ]  # fmt: skip
    plans = run(tmp_path, print, hours=1, plan=lambda result_of: iter([later]))
    assert plans == [], "it has a row, and is not trained"
