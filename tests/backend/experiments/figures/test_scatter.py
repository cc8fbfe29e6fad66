import pytest

from backend.drawing.panels import Frame
from backend.experiments.figures.kinds.scatter import RunDot, dots_figure
from tests.backend.drawing.lines import valid
from tests.backend.experiments.figures.finished import ARMS, STUDIES, figure, finish, numbers, started
from tests.support.service import RunningService

pytestmark = pytest.mark.service

FRAME = Frame("t", ["A3C", "PAAC"])


def test_scatter_has_each_run_at_its_setting(service: RunningService) -> None:
    space = {"config.learning_rate": {"distribution": "log_uniform", "low": 1e-4, "high": 1e-2}}
    wanted = {"kind": "scatter", "setting": "config.learning_rate", "log": True}
    study = started(service.client, wanted, draws={"n": 3, "space": space})
    finish(service, study)
    answer = figure(service.client, study)
    drawn = {(t["name"], t["xaxis"]): t for t in answer["figure"]["data"]}
    cells = service.client.get(f"{STUDIES}/{study}/cells").json()["items"]
    rates = [
        cell["settings"]["config.learning_rate"]
        for cell in cells
        if (cell["arm"], cell["environment"]) == ("PAAC", "CartPole-v1")
    ]
    assert numbers(drawn["PAAC", "x"]["x"]) == rates
    assert numbers(drawn["PAAC", "x"]["y"]) == [10.0, 20.0, 30.0]
    assert answer["figure"]["layout"]["xaxis"]["type"] == "log"
    assert "%{x:.4~g}" in drawn["PAAC", "x"]["hovertemplate"]
    named = started(service.client, {"kind": "scatter", "setting": "config.optimizer"}, arms=ARMS[1:])
    finish(service, named)
    [dots, *_] = figure(service.client, named)["figure"]["data"]
    assert "%{x}" in dots["hovertemplate"], "no number format of a word"
    assert "CartPole: highest score 31" in answer["finding"]


def test_dots_are_drawn_on_a_log_axis_in_the_colour_of_their_arm() -> None:
    dots = [
        RunDot("A3C", "Pong", "r1", 1e-4, 1.0),
        RunDot("A3C", "Pong", "<r2>", 1e-2, 2.0),
        RunDot("PAAC", "Pong", "r3", 1e-3, 3.0),
    ]
    figure = valid(dots_figure(dots, panels=["Pong"], x="Rate", y="Score", log=None, frame=FRAME))
    assert [(trace.name, list(trace.x), list(trace.y)) for trace in figure.data] == [
        ("A3C", [1e-4, 1e-2], [1.0, 2.0]), ("PAAC", [1e-3], [3.0])
    ]  # fmt: skip
    assert figure.data[0].text[1] == "&lt;r2&gt;"
    assert (figure.layout.xaxis.type, list(figure.layout.xaxis.tickvals)) == ("log", [1e-4, 1e-3, 1e-2])
    assert list(figure.layout.xaxis.ticktext) == ["1e−4", "0.001", "0.01"]
    drawn = [RunDot("A3C", "Pong", "r", rate, 1.0) for rate in (1.079e-4, 1.208e-4)]
    random = valid(dots_figure(drawn, panels=["Pong"], x="Rate", y="Score", log=True, frame=FRAME))
    assert list(random.layout.xaxis.tickvals) == [1.079e-4, 1.208e-4]
    assert figure.data[0].marker.line.color != figure.data[1].marker.line.color


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (23_456.5, 34_567_890.5, ["100k", "1.0M", "10.0M"]),
        (12_345.5, 67_890.5, ["20.0k", "50.0k"]),
        (0.000123, 0.0345, ["0.001", "0.01"]),
        (2.34567, 4.56789, ["2.34567", "4.56789"]),
    ],
)
def test_a_log_axis_of_random_settings_has_texts_of_tables(low: float, high: float, texts: list[str]) -> None:
    dots = [RunDot("A3C", "Pong", "r", value, 1.0) for value in (low, high)]
    axis = valid(dots_figure(dots, panels=["Pong"], x="x", y="y", log=True, frame=FRAME)).layout.xaxis
    assert list(axis.ticktext) == texts
