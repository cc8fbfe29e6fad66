"""Results as files, their table, and the deadlines of stages."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu.__main__ import Stage, deadline_of
from benchmarks.gpu.results import JSON_FILE, TABLE_FILE, Results
from benchmarks.gpu.stages.profile import fastest
from benchmarks.gpu.stages.tests import check_counts, counts
from benchmarks.gpu.table import table

pytestmark = pytest.mark.long


def paac(name: str, rate: float | None, **changed: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {"stage": "throughput", "row": name, "method": "paac", "network": "nature"}
    facts |= {"graphs": True, "groups": 2, **changed}
    return facts | ({} if rate is None else {"agent_steps_per_s": rate})


EMULATORS = {"stage": "throughput", "row": "alone", "method": "emulators", "agent_steps_per_s": 40_000.0}


def lines_of(*rows: dict[str, Any]) -> list[str]:
    return table({"facts": {"device": "cuda"}, "stages": [], "rows": list(rows)}).splitlines()


def test_files_are_valid_after_each_row_and_replace_what_was_known(tmp_path: Path) -> None:
    results = Results(tmp_path, {"device": "cuda"})
    results.add("pong", "training", {"points": [[1.0, 100, None]]})
    results.add("pong", "training", {"points": [[1.0, 100, math.nan]], "error": "killed"})
    results.end_stage("pong", 3.0, None)

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    content = json.loads((tmp_path / JSON_FILE).read_text("utf-8"), parse_constant=refuse)
    assert content["rows"] == [
        {"stage": "pong", "row": "training", "points": [[1.0, 100, "nan"]], "error": "killed"}
    ]
    assert "killed" in (tmp_path / TABLE_FILE).read_text("utf-8")


def test_table_compares_paac_with_the_emulators_and_names_errors() -> None:
    usage = {"metrics": {"paac/time_environment": 0.41}}
    lines = lines_of(EMULATORS, paac("a", 20_000.0) | usage, paac("b", None) | {"error": "not reached"})
    [row] = [line for line in lines if line.startswith("| a ")]
    assert [cell.strip() for cell in row.strip("|").split("|")] == ["a", "20,000", "50%", "41%"]
    assert "- b: not reached" in lines


def test_table_without_any_row_has_the_facts() -> None:
    assert lines_of() == ["# benchmarks.gpu", "", "- device: cuda"]


def test_table_has_the_last_point_of_pong() -> None:
    points = [[float(t), 1000 * t, -21.0 + t] for t in range(1, 48)]
    lines = lines_of({"stage": "pong", "row": "training", "points": points})
    rows = [line.split("|") for line in lines if line.startswith("| ")]
    assert rows[-1][1].strip() == "47"
    assert len(rows) < len(points)


def test_table_has_returns_with_two_decimals() -> None:
    points = [[float(t), 1000 * t, mean] for t, mean in enumerate((None, 17.96, "nan"), 1)]
    text = "\n".join(lines_of({"stage": "pong", "row": "training", "points": points}))
    cells = [line.split("|")[3].strip() for line in text.splitlines() if line.startswith("| ")]
    assert cells[2:] == ["", "17.96", "nan"]


def test_table_has_pong_under_its_heading_without_a_training() -> None:
    profile = {"stage": "profile", "row": "profile of a", "file": "profile.txt"}
    lines = lines_of(profile, {"stage": "pong", "row": "evaluation", "error": "not reached"})
    assert lines[-3:] == ["## Pong, full frame", "", "- evaluation: not reached"]


def test_ratio_to_stable_baselines3_is_of_the_fastest_row() -> None:
    peer = {"stage": "peers", "row": "SB3", "method": "sb3-a2c", "agent_steps_per_s": 1_000.0}
    lines = lines_of(paac("a", 2_000.0), paac("b", 2_500.0), peer)
    [ratio] = [line for line in lines if "best paac" in line]
    assert ratio.split("|")[2].strip() == "2.5"


def test_fastest_row_is_one_that_runs_can_have() -> None:
    rows = [
        EMULATORS,
        paac("slow", 1_000.0),
        paac("fast", 2_000.0),
        paac("switched", 3_000.0, graphs=False),
        paac("other network", 4_000.0, network="nips"),
        paac("failed", None),
    ]
    best = fastest(rows)
    assert best is not None
    assert best["row"] == "fast"
    assert fastest(rows[:1]) is None


def test_stage_ends_at_its_limit_or_leaves_later_stages_their_reserves() -> None:
    stage, later = Stage("a", limit_s=60.0, reserve_s=0.0), (Stage("b", 90.0, 30.0), Stage("c", 90.0, 50.0))
    assert deadline_of(stage, later, now_s=1_000.0, end_s=2_000.0) == 1_060.0
    assert deadline_of(stage, later, now_s=1_000.0, end_s=1_100.0) == 1_020.0


def test_counts_of_a_test_report(tmp_path: Path) -> None:
    report = tmp_path / "tests.xml"
    report.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="a" name="passes"/>'
        '<testcase classname="a" name="fails"><failure/></testcase>'
        '<testcase classname="a" name="breaks"><error/></testcase>'
        '<testcase classname="a" name="skips"><skipped/></testcase>'
        "</testsuite></testsuites>",
        "utf-8",
    )
    assert counts(report) == {"passed": 1, "failed": 2, "skipped": 1, "failures": ["a::fails", "a::breaks"]}


@pytest.mark.parametrize(
    ("numbers", "device", "problem"),
    [
        ((51, 0, 0), "cuda", None),
        ((50, 1, 0), "cuda", None),  # a failure is reported as one
        ((0, 0, 51), "cuda", "tests skipped: 51; PyTorch cannot use a GPU"),
        ((50, 0, 1), "cuda", "tests skipped: 1; PyTorch cannot use a GPU"),
        ((0, 0, 0), "cuda", "no test was collected"),
        ((50, 0, 1), "cpu", None),
        ((0, 0, 51), "cpu", "every test was skipped"),
        ((0, 0, 0), "cpu", "no test was collected"),
    ],
)
def test_skipped_tests_on_a_gpu_are_an_error(
    numbers: tuple[int, int, int], device: str, problem: str | None
) -> None:
    record = dict(zip(("passed", "failed", "skipped"), numbers, strict=True))
    assert check_counts(record, device) == problem
