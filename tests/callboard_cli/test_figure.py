import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from tests.backend.comparisons.test_endpoints import two_rates
from tests.support.service import RunningService

pytestmark = pytest.mark.service

Callboard = Callable[..., Result]


def test_figure_is_written_in_every_format(
    callboard: Callboard, sqlite_service: RunningService, tmp_path: Path
) -> None:
    good, bad = two_rates(sqlite_service.engine)
    target = tmp_path / "fig.1"
    done = callboard("figure", "seed_curve", *good, *bad, "--interval", "se", "--output", str(target))
    assert done.exit_code == 0, done.output
    files = [tmp_path / f"fig.1.{ending}" for ending in ("csv", "py", "txt", "json")]
    assert done.output.splitlines() == [str(file) for file in files]
    table, script, caption, figure = (file.read_text() for file in files)
    assert table.startswith("number,series,kind,run,metric,source,x,y,low,high,n,text\n")
    compile(script, "fig.1.py", "exec")
    assert "exact two-sided permutation test" in caption
    assert {trace["type"] for trace in json.loads(figure)["data"]} == {"scatter"}


def test_runs_of_a_figure_can_be_chosen_by_filter(
    callboard: Callboard, sqlite_service: RunningService, tmp_path: Path
) -> None:
    good, bad = two_rates(sqlite_service.engine, 1)
    target = tmp_path / "curve"
    wanted = ("--filter", "config.learning_rate<0.05", "--metric", "rollout/episode_return")
    done = callboard("figure", "curve", *wanted, "--format", "csv", "--output", str(target))
    assert done.output == f"{target}.csv\n"
    rows = Path(f"{target}.csv").read_text()
    assert good[0] in rows
    assert bad[0] not in rows


def test_wrong_input_is_reported_in_one_line(
    callboard: Callboard, sqlite_service: RunningService, tmp_path: Path
) -> None:
    good, _ = two_rates(sqlite_service.engine, 1)
    for arguments, message in (
        (("seed_curve",), "name the runs to draw"),
        (("seed_curve", "nonsense"), "is not the id of a run"),
        (("curve", good[0]), "metric"),
        (
            ("seed_curve", good[0], "--output", str(tmp_path / "no" / "folder")),
            "name another file with --output",
        ),
    ):
        done = callboard("figure", *arguments)
        assert done.exit_code == 2, done.output
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1
