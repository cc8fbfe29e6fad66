import numpy as np
import plotly.graph_objects as go
import pytest

from backend.analysis.metrics import repository as series
from backend.db.engine import writing
from backend.drawing.catalogue import METRICS
from backend.drawing.curve import CurveLine
from backend.drawing.diagnostics import BY_ID, available_panels, diagnostic_figure
from backend.drawing.figure import Label
from backend.specs.algorithms import ALGORITHMS
from backend.specs.events import PointsEvent
from backend.statistics.columns import Array
from tests.backend.drawing.lines import valid
from tests.support.rows import make_run
from tests.support.service import RunningService

RUN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def line(metric: str, source: str = "", **changes: Array) -> CurveLine:
    mean = np.array([0.25, 0.5])
    columns = {"x": np.array([1, 2]), "mean": mean, "min": mean, "max": mean, "count": np.array([1, 1])}
    columns |= {"smoothed": np.array([0.25, 0.4])}
    return CurveLine(RUN, Label("a run"), metric, source, columns | changes)


def draw(panel: str, *lines: CurveLine, smooth: str = "") -> go.Figure:
    return valid(diagnostic_figure(BY_ID[panel], lines, x="agent_steps", smooth=smooth, title="t"))


def test_panel_names_each_metric() -> None:
    figure = draw("queues", line("ga3c/prediction_queue"), line("ga3c/training_queue"))
    assert [trace.name for trace in figure.data] == ["prediction", "training"]
    assert figure.data[0].y == (0.25, 0.5)
    assert figure.data[0].line.color != figure.data[1].line.color
    assert figure.layout.yaxis.title.text == "Requests"


def test_share_panel_is_stacked_to_one() -> None:
    lines = [line("ga3c/policy_lag_share", f"lag {at}") for at in range(3)]
    figure = draw("lag_share", *lines, smooth="0.5")
    assert [trace.name for trace in figure.data] == ["lag 0", "lag 1", "lag 2"]
    assert {trace.stackgroup for trace in figure.data} == {"shares"}
    assert figure.layout.yaxis.range == (0, 1)
    assert figure.data[0].y == (0.25, 0.4)


def test_share_that_is_always_zero_is_not_in_the_legend() -> None:
    zero = line("ga3c/policy_lag_share", "lag 1", mean=np.array([0.0, np.nan]))
    figure = draw("lag_share", line("ga3c/policy_lag_share", "lag 0"), zero)
    assert [trace.showlegend for trace in figure.data] == [True, False]
    assert draw("queues", line("ga3c/training_queue", mean=np.zeros(2))).data[0].showlegend is None


def test_legend_with_many_entries_is_vertical() -> None:
    def legend(n_lines: int) -> tuple[str, str]:
        lines = [line("ga3c/policy_lag_share", f"lag {at}") for at in range(n_lines)]
        figure = draw("lag_share", *lines)
        return figure.layout.legend.orientation, figure.layout.legend.yref

    # A vertical legend that is placed relative to the container would shrink the plot.
    assert [legend(4), legend(8)] == [("h", "container"), ("v", "paper")]


def test_setting_panel_draws_steps_without_smoothing() -> None:
    figure = draw("setting", line("ga3c/n_actors"), smooth="0.9")
    assert figure.data[0].line.shape == "hv"
    assert figure.data[0].y == (0.25, 0.5), "not smoothed"


def test_available_panels_are_those_of_recorded_metrics() -> None:
    assert available_panels({"rollout/episode_return", "loss/value", "speed/updates_per_s"}) == []
    assert [panel.id for panel in available_panels({"exploration/epsilon", "value/max_q"})] == [
        "epsilon",
        "q",
    ]
    declared = ALGORITHMS["ga3c"].panels
    assert len(declared) == 7
    assert available_panels({metric for panel in declared for metric in panel.names}) == list(declared)


def test_algorithms_that_share_a_panel_or_a_metric_declare_it_alike() -> None:
    for algorithm in ALGORITHMS.values():
        assert all(BY_ID[panel.id] == panel for panel in algorithm.panels)
        assert all(METRICS[name] == metric for name, metric in algorithm.metrics.items())


@pytest.mark.service
def test_diagnostic_endpoints_list_panels_and_draw_figures(sqlite_service: RunningService) -> None:
    run = make_run(sqlite_service.engine)
    client = sqlite_service.client
    assert client.get("/api/v1/figures/diagnostics", params={"run": run.id}).json() == {"items": []}

    def points(source: str) -> PointsEvent:
        return PointsEvent(
            metric="exploration/epsilon",
            source=source,
            agent_steps=[1, 2],
            frames=[4, 8],
            wall_time_s=[0.1, 0.2],
            episodes=[0, 0],
            value=[1.0, 0.9],
        )

    with writing(sqlite_service.engine) as session:
        series.append(session, run.id, 1, 1, [points(f"actor {k}") for k in (10, 9, 0)])
    (panel,) = client.get("/api/v1/figures/diagnostics", params={"run": run.id}).json()["items"]
    assert panel == {"id": "epsilon", "title": "Epsilon", "metrics": ["exploration/epsilon"]}
    ask = {"run": run.id, "panel": "epsilon", "smooth": "0.9"}
    figure = client.get("/api/v1/figures/diagnostic", params=ask).json()
    assert [trace["name"] for trace in figure["data"]] == ["actor 0", "actor 9", "actor 10"]
    assert 0.9 < figure["data"][0]["y"][1] < 1.0, "smoothed"
    refused = client.get("/api/v1/figures/diagnostic", params={"run": run.id, "panel": "nothing"})
    assert refused.status_code == 422
    assert "panel" in refused.json()["errors"][0]["field"]
