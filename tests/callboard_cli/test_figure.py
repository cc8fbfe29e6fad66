import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from typer.testing import Result

from backend.app import create_app
from backend.drawing.palette import look
from backend.platform.settings import Settings
from callboard_cli.figure import Kind
from callboard_cli.main import app
from tests.backend.analysis.comparisons.test_endpoints import two_rates
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


def test_iqm_with_its_bootstrap_band_and_single_seeds_is_drawn_in_a_given_style(
    callboard: Callboard, sqlite_service: RunningService, tmp_path: Path
) -> None:
    good, bad = two_rates(sqlite_service.engine, 5)
    target = tmp_path / "iqm"
    shown = ("--interval", "bootstrap", "--seeds", "--environment", "CartPole-v1", "--output", str(target))
    forms = ("--format", "json", "--format", "caption")
    done = callboard("figure", "seed_curve", *good, *bad, *shown, *forms)
    assert done.exit_code == 0, done.output
    assert "Band: 95 % of bootstrapped interquartile means." in target.with_suffix(".txt").read_text()
    traces = json.loads(target.with_suffix(".json").read_text())["data"]
    assert sum(trace["meta"]["kind"] == "seed" for trace in traces) == len(good) + len(bad)
    group = traces[0]["meta"]["group"]
    done = callboard("figure", "seed_curve", *good, *shown, *forms[:2], "--group-style", f"{group}:1")
    assert done.exit_code == 0, done.output
    traces = json.loads(target.with_suffix(".json").read_text())["data"]
    lines = [trace["line"]["color"] for trace in traces if trace["meta"]["kind"] == "line"]
    assert set(lines) == {look(1, "light").colour}


def test_band_and_style_of_a_run_are_drawn(
    callboard: Callboard, sqlite_service: RunningService, tmp_path: Path
) -> None:
    good, _ = two_rates(sqlite_service.engine, 1)
    target = tmp_path / "curve"
    shown = ("--band", "min_max", "--points", "20", "--style", "3", "--format", "json")
    done = callboard("figure", "learning_curve", good[0], *shown, "--output", str(target))
    assert done.exit_code == 0, done.output
    traces = json.loads(target.with_suffix(".json").read_text())["data"]
    kinds = {trace["meta"]["kind"]: trace for trace in traces}
    assert kinds["range"]["name"] == "min–max"
    assert kinds["line"]["line"]["color"] == look(3, "light").colour


PAGES_ALONE = {"theme", "width", "embedded", "since_revision", "layout", "had_scale"}
"""Parameters of figures on pages, and of their updates."""
RENAMED = {("scatter", "x"): "--setting", ("scatter", "y"): "--score", (None, "heading"): "--title"}
"""Options that have other names than their parameters; by the only figure that has them."""


def test_options_and_their_choices_are_the_parameters_of_rest(tmp_path: Path) -> None:
    root: Any = typer.main.get_command(app)
    options = {
        option.opts[0]: set(getattr(option.type, "choices", ()))
        for option in root.commands["figure"].params
        if option.opts[0].startswith("--")
    }
    paths = create_app(Settings(home=tmp_path)).openapi()["paths"]
    parameters: dict[str, set[str]] = {}
    for kind in get_args(Kind):
        for parameter in paths[f"/api/v1/figures/{kind}"]["get"]["parameters"]:
            name = parameter["name"]
            if parameter["in"] != "query" or name == "run" or name in PAGES_ALONE:
                continue
            flag = RENAMED.get((kind, name)) or RENAMED.get((None, name)) or f"--{name.replace('_', '-')}"
            parameters.setdefault(flag, set()).update(choices_of(parameter["schema"]))
    assert options["--format"] < parameters["--format"], "HTML is for a browser"
    options["--format"] = parameters["--format"]
    assert {flag: options[flag] for flag in options.keys() - {"--filter", "--output"}} == parameters


def choices_of(schema: Any) -> set[str]:
    """The values that a schema lists, of its alternatives and items too."""
    parts = [*schema.get("anyOf", []), *filter(None, [schema.get("items")])]
    listed = [*schema.get("enum", []), *filter(None, [schema.get("const")])]
    return set(listed).union(*map(choices_of, parts))


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


def test_options_and_runs_that_a_figure_would_leave_out_are_refused(callboard: Callboard) -> None:
    runs = ("01M7W7C9JWHJM9YNCV5T8SCRXZ", "01M7W7C9JWHJM9YNCV5T8SCRXY")
    for arguments, message in (
        (
            ("scatter", *runs, "--setting", "config.n_e", "--x-from", "1"),
            "--x-from: not an option of scatter",
        ),
        (("seed_curve", *runs, "--group-by", "seed"), "--group-by: not an option of seed_curve"),
        (("diagnostic", *runs, "--panel", "losses"), "run: diagnostic draws one run, not 2"),
    ):
        done = callboard("figure", *arguments)
        assert (done.exit_code, done.stderr) == (2, f"callboard: {message}\n")


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
