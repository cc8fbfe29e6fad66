"""How runs look: in notebooks, on terminals, and drawn."""

import io
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import callboard
import callboard_cli
from callboard.display import MAX_CHARACTERS, MAX_SHOWN, Progress, counted, lines_of, score_text
from callboard.runs import Run, Runs
from callboard.transport import Server, Transport
from tests.client.support import NOBODY, Target

SCORES = Path(__file__).parents[2] / "frontend" / "src" / "lib" / "scores.json"
"""Scores with the texts that pages have for them."""

MARKUP = "<script>alert(1)</script>\x1b[2J\u202e"


class Terminal(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        return True


def data(number: int = 0, **more: Any) -> dict[str, Any]:
    """A run as the server describes it."""
    run = {"id": f"{number:026}", "name": MARKUP * 100, "state": "running", "agent_steps": 1_234_567}
    run |= {"score": 17.25, "algorithm": "paac", "environment": "Pong", "seed": number, "progress": 0.5}
    return run | more


def runs(*rows: dict[str, Any]) -> Runs:
    transport = Transport(Server(f'{NOBODY}/"><b>', "token"))
    return Runs(transport, [Run(transport, row) for row in rows])


def test_runs_are_a_table_without_markup_of_their_texts_and_of_bounded_size() -> None:
    many = runs(*(data(number) for number in range(1_000)))
    page = many._repr_html_()
    assert page.count("<tr>") == MAX_SHOWN + 2
    assert f"and {1_000 - MAX_SHOWN:,} more" in page
    assert "<script" not in page
    assert "<b>" not in page
    assert not re.search("[\x00-\x1f\u202e]", page)
    assert len(page) < MAX_SHOWN * 1_500
    single = many[7]._repr_html_()
    assert "<td>running</td><td>1,234,567</td><td>17.3</td><td>paac</td><td>Pong</td><td>7</td>" in single
    assert max(map(len, re.findall(r">([^<]*)</a>", single))) <= MAX_CHARACTERS * len("&lt;")
    assert "<td>–</td></tr>" in runs(data(7, seed_is_known=False))._repr_html_()


def test_progress_is_one_line_of_a_terminal_and_nothing_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal, file = Terminal(), io.StringIO()
    for output in (terminal, file):
        line = Progress(output)
        line.show([data()], 0)
        line.show([data(state="finished", progress=None, score=None)], 1)
        line.close()
    assert file.getvalue() == ""
    first, second = terminal.getvalue().lstrip("\r").split("\r")
    assert first == "[############............]  50%, 1,234,567 agent steps, running, score 17.3"
    assert second.startswith("[########################] 100%, 1,234,567 agent steps, finished, score –")
    assert second.endswith("\n")
    terminal = Terminal()
    Progress(terminal).show([data(), data(state="failed"), data(progress=None)], 1)
    assert " 50%, 1 of 3 runs have ended, " in terminal.getvalue()


def test_plot_names_the_extra_without_matplotlib_and_what_it_cannot_draw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases: list[tuple[Sequence[dict[str, Any]], dict[str, Any], str]] = [
        ((), {}, "no runs"),
        ((data(),), {"x": "frames"}, "x: must be agent_steps or wall_time_s: got 'frames'"),
        ([*map(data, range(101))], {}, "at most 100 curves"),
    ]
    for rows, options, message in cases:
        with pytest.raises(ValueError, match=message):
            runs(*rows).plot(**options)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'callboard-client\[plot\]'"):
        runs(data())[0].plot()


@pytest.mark.service
def test_plot_draws_a_curve_for_each_run_and_its_return_by_default(
    target: Target, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    ids = []
    for seed, name in enumerate(("_a $x$", "b")):
        with callboard.init(name, algorithm="a", environment="e", seed=seed, step_unit="iterations") as run:
            run.log({"charts/episodic_return": 1.0 + seed, "loss/a": 5.0}, agent_steps=3)
            run.log({"charts/episodic_return": 2.0 + seed, "loss/a": float("nan")}, agent_steps=8)
        ids.append(run.id)
    with callboard.connect() as client:
        listed = client.runs(sort="seed")
        assert [run.id for run in listed] == ids
        axes: Any = listed.plot()
        assert [line.get_ydata().tolist() for line in axes.lines] == [[1.0, 2.0], [2.0, 3.0]]
        assert [line.get_xdata().tolist() for line in axes.lines] == [[3.0, 8.0]] * 2
        assert axes.get_xlabel() == "iterations"
        assert len(axes.get_legend().get_texts()) == 2
        single = listed[0].plot("loss/a", "charts/episodic_return", x="wall_time_s", ax=axes)
        assert single is axes
        assert axes.get_xlabel() == "training time (s)"
        axes.figure.canvas.draw()
        assert not caplog.messages
        assert len(listed.plot("loss/a", "loss/b").lines) == 2
        (message,) = caplog.messages
        assert message.startswith('plot: no points of a metric "loss/b"')


def test_terminals_and_notebooks_have_the_scores_of_pages() -> None:
    cases = [(value, text.replace("−", "-")) for value, text in json.loads(SCORES.read_text("utf-8"))]
    for write in (score_text, callboard_cli.score_text):
        assert [(value, write(value)) for value, _ in cases] == cases
    assert [score_text(value) for value in ("NaN", "Infinity", float("nan"))] == ["–"] * 3


def test_lines_of_a_run_are_rounded_and_flat_and_leave_out_what_is_empty() -> None:
    run: dict[str, Any] = {
        "wall_time_s": 85.0300029840073,
        "agent_steps_per_s": 1234.5678,
        "progress": 1 / 3,
        "score": 119.55,
    }
    run |= {"best_return": None, "notes": "", "tags": ["a", "b"], "archived": False, "links": []}
    run |= {"spec": {"config": {"learning_rate": 0.123456789, "layers": [64, 64]}, "custom": None}}
    run |= {"attempts": [{"number": 1, "gpus": []}]}
    assert dict(lines_of(run)) == {
        "wall_time_s": "85.03",
        "agent_steps_per_s": "1,234.57",
        "progress": "0.3333",
        "score": "119.6",
        "tags": "a, b",
        "archived": "no",
        "spec.config.learning_rate": "0.123456789",
        "spec.config.layers": "64, 64",
        "attempts[0].number": "1",
    }


def test_number_of_things_has_the_form_of_its_noun() -> None:
    assert [counted(n, "run") for n in (0, 1, 2, 1_000)] == ["0 runs", "1 run", "2 runs", "1,000 runs"]
    assert repr(runs(data(name="a"))).startswith("<1 run: ")
