from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import select

from backend.analysis.metrics import repository as metrics
from backend.db import ExperimentCell, Run
from backend.db.engine import writing
from backend.drawing.panels import Frame
from backend.experiments.figures.kinds import curves as curves_kind
from backend.experiments.figures.kinds import sorted_scores
from backend.experiments.figures.kinds.curves import curves_figure
from backend.experiments.figures.mean_curves import ArmCurve
from backend.specs.events import PointsEvent
from tests.backend.drawing.lines import valid
from tests.backend.experiments.figures.finished import figure, finish, numbers, started
from tests.support.service import RunningService

pytestmark = pytest.mark.service

FRAME = Frame("t", ["A3C", "PAAC"])


def test_captions_say_which_curves_and_runs_are_left_out(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves_kind, "MAX_RUNS_PER_CURVE", 2)
    for kind in (curves_kind, sorted_scores):
        monkeypatch.setattr(kind, "MAX_CURVES", 3)
    study = started(sqlite_service.client, {"kind": "curves"}, {"kind": "sorted"})
    finish(sqlite_service, study)
    curves, ordered = (figure(sqlite_service.client, study, name)["caption"] for name in ("f0", "f1"))
    assert curves == (
        "mean of the last training scores of 3 runs; lines: means over 4 % of each run’s length, "
        "band ± 1 s.e.; "
        "each curve is of the first 2 runs; the first 3 of 4 curves are drawn; 12 of 12 runs are in"
    )
    assert ordered.startswith("last training score of each run; ")
    assert ordered.endswith("; the first 3 of 4 curves are drawn")


def test_curves_are_the_means_of_the_runs_of_each_arm(service: RunningService) -> None:
    best = {"kind": "curves", "x": "hours", "reduction": {"rule": "mean_of_best", "k": 1}}
    study = started(service.client, {"kind": "curves"}, best, {"kind": "curves", "x": "epochs"})
    finish(service, study)
    lines = {
        (trace["name"], trace["xaxis"]): (numbers(trace["x"]), numbers(trace["y"]))
        for trace in figure(service.client, study)["figure"]["data"]
        if "name" in trace
    }
    assert lines["A3C", "x"][1][-1] == pytest.approx(21.0)
    assert lines["PAAC", "x2"][1][-1] == pytest.approx(-20.0)
    assert lines["PAAC", "x"][0][-1] == pytest.approx(10_000, rel=0.05)
    short = figure(service.client, study, "f1")["figure"]
    of_best = [t for t in short["data"] if t.get("name") == "PAAC"]
    assert numbers(of_best[0]["y"])[-1] == pytest.approx(30.0)
    assert numbers(of_best[0]["x"])[-1] == pytest.approx(20.0, rel=0.05)
    assert short["layout"]["xaxis"]["title"]["text"] == "Training time (s)", "less than a minute"
    by_epoch = figure(service.client, study, "f2")["figure"]
    epochs = [t for t in by_epoch["data"] if t.get("name") == "PAAC"]
    assert numbers(epochs[0]["x"])[-1] == pytest.approx(0.0025, rel=0.05)
    assert by_epoch["layout"]["xaxis"]["tickformat"] == "~g", "no thousandths as m"
    with writing(service.engine) as session:
        for cell in session.scalars(select(ExperimentCell)).all():
            session.get_one(Run, cell.run_id).wall_time_s = 7_200.0
    long = figure(service.client, study, "f1")["figure"]["layout"]
    assert long["xaxis"]["title"]["text"] == "Training time (h)"


def test_curve_that_was_read_before_has_the_points_that_came_since(service: RunningService) -> None:
    study_id = started(service.client, {"kind": "curves"})
    finish(service, study_id)
    before = figure(service.client, study_id)
    assert figure(service.client, study_id) == before
    with writing(service.engine) as session:
        cell = session.scalars(select(ExperimentCell).where(ExperimentCell.number == 0)).one()
        later = PointsEvent(
            metric="rollout/episode_return", source="", agent_steps=[20_000], frames=[20_000],
            wall_time_s=[40.0], episodes=[5], value=[500.0],
        )  # fmt: skip
        metrics.append(session, cell.run_id or "", 1, 2, [later])
    after = figure(service.client, study_id)
    highest = [
        max(np.nanmax(numbers(trace["y"])) for trace in drawn["figure"]["data"]) for drawn in (before, after)
    ]
    assert highest[1] > highest[0] + 100


def test_curves_of_the_best_settings_are_drawn_where_each_arm_has_one(service: RunningService) -> None:
    wanted = {"kind": "curves", "setting": "config.learning_rate",
              "reduction": {"rule": "mean_of_best", "k": 3, "of": "settings"}}  # fmt: skip
    study = started(service.client, wanted, draws={"n": 1})
    finish(service, study)
    drawn = figure(service.client, study)
    assert (drawn["n_in"], len(drawn["figure"]["data"]) > 0) == (4, True)
    assert "mean of 1 learning rate;" in drawn["caption"]


def curve(arm: str, panel: str, n_runs: int = 1) -> ArmCurve:
    x = np.array([1.0, 2.0])
    return ArmCurve(arm, panel, x, x * 10, x * 9, x * 11, np.full(2, n_runs), n_runs)


def test_curves_have_a_panel_for_each_environment_and_one_legend() -> None:
    curves = [curve("PAAC", "Pong"), curve("A3C", "Pong", 3), curve("A3C", "Breakout", 3)]
    figure = valid(curves_figure(curves, panels=["Pong", "Breakout", "Qbert"], x="x", y="y", frame=FRAME))
    named = [(trace.name, trace.xaxis, trace.showlegend) for trace in figure.data if trace.name]
    assert named == [("A3C", "x", True), ("A3C", "x2", False), ("PAAC", "x", True)]
    bands = [trace for trace in figure.data if not trace.name]
    assert len(bands) == 4
    assert [note.text for note in figure.layout.annotations] == [
        "Pong",
        "Breakout",
        "Qbert",
    ]
    assert figure.layout.xaxis3.domain[0] > figure.layout.xaxis2.domain[1] > figure.layout.xaxis.domain[1]


def test_mean_of_some_of_the_runs_is_a_thin_line_without_a_band() -> None:
    whole = curve("A3C", "Pong", 3)
    some_runs = replace(whole, n=np.array([3, 1]))
    traces = valid(curves_figure([some_runs], panels=["Pong"], x="x", y="y", frame=FRAME)).data
    low, high, line, thin = [(trace.meta["kind"], trace.y, trace.line.width) for trace in traces]
    assert [low, high] == [("range", (9.0, None), 0), ("range", (11.0, None), 0)]
    assert [line, thin] == [("line", (10.0, None), 2), ("partial", (20.0,), 1)]
    assert [trace.customdata for trace in traces[2:]] == [(3, 1), (1,)]
    assert len(valid(curves_figure([whole], panels=["Pong"], x="x", y="y", frame=FRAME)).data) == 3


@pytest.mark.parametrize(("width", "columns"), [(390, 1), (700, 2), (1280, 3)])
def test_panels_stand_in_as_many_columns_as_the_width_allows(width: int, columns: int) -> None:
    panels = ["a", "b", "c", "d"]
    frame = Frame("t", ["A3C", "PAAC"], width_px=width)
    figure = valid(
        curves_figure([curve("A3C", panel) for panel in panels], panels=panels, x="x", y="y", frame=frame)
    )
    axes = [figure.layout[f"xaxis{'' if at == 1 else at}"].domain for at in range(1, 5)]
    assert len({domain[0] for domain in axes}) == columns
