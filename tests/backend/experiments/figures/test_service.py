import ast
import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from backend.analysis.metrics import repository as metrics
from backend.db import ExperimentCell
from backend.db.engine import reading, writing
from backend.specs.events import PointsEvent
from backend.specs.host_load import CPU_GRANTED
from tests.backend.experiments.figures.finished import STUDIES, figure, finish, started
from tests.support.rows import add_attempt, make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_captions_of_figures_over_time_count_runs_that_trained_beside_others(service: RunningService) -> None:
    study = started(service.client, {"kind": "curves", "x": "hours"}, {"kind": "curves"})
    finish(service, study)
    with reading(service.engine) as session:
        cells = session.scalars(select(ExperimentCell).order_by(ExperimentCell.number)).all()
        run_ids = [cell.run_id or "" for cell in cells]
    began = datetime(2026, 1, 1, tzinfo=UTC)
    other, earlier, later = (make_run(service.engine, seed=seed) for seed in (100, 101, 102))
    attempts = [(0, 30, "a"), (30, 60, "a"), (50, 90, "b"), (60, 90, "a"), (100, 130, "a"), (120, 150, "a")]
    for run_id, (first_s, last_s, host) in zip(run_ids, attempts, strict=False):
        claimed_at, ended_at = (began + timedelta(seconds=at_s) for at_s in (first_s, last_s))
        add_attempt(service.engine, run_id, claimed_at=claimed_at, ended_at=ended_at, host=host)
    add_attempt(service.engine, other.id, claimed_at=began + timedelta(seconds=85), ended_at=None, host="b")
    add_attempt(service.engine, earlier.id, claimed_at=began - timedelta(days=1), ended_at=began, host="a")
    add_attempt(service.engine, later.id, claimed_at=began + timedelta(seconds=150), ended_at=None, host="a")
    resumed = began + timedelta(seconds=95)  # run 3, which is its own neighbour at no time
    add_attempt(service.engine, run_ids[3], 2, claimed_at=began + timedelta(seconds=80), ended_at=resumed)
    captions = [figure(service.client, study, f"f{at}")["caption"] for at in range(2)]
    assert captions[0].endswith(
        "; 12 of 12 runs are in; 3 of 12 finished runs trained beside others on their host"
    )
    assert captions[1].endswith("; 12 of 12 runs are in")


def test_starved_runs_are_counted_in_captions_and_marked_on_their_pages(
    sqlite_service: RunningService,
) -> None:
    study = started(sqlite_service.client, {"kind": "curves"})
    finish(sqlite_service, study)
    with writing(sqlite_service.engine) as session:
        cells = session.scalars(select(ExperimentCell).order_by(ExperimentCell.number)).all()
        run_ids = [cell.run_id or "" for cell in cells]
        for run_id, values in zip(run_ids, ([10.0, 60.0], [90.0, 95.0]), strict=False):
            points = PointsEvent(
                metric=CPU_GRANTED, source="", agent_steps=[1, 2], frames=[1, 2], wall_time_s=[1.0, 2.0],
                episodes=[0, 0], value=values,
            )  # fmt: skip
            metrics.append(session, run_id, 1, 1, [points])
    caption = figure(sqlite_service.client, study)["caption"]
    words = "1 of 12 finished runs had less than half of the processor time that they could use"
    assert caption.endswith(f"; {words}")
    shown = [sqlite_service.client.get(f"/api/v1/runs/{run_id}/symptoms").json() for run_id in run_ids[:3]]
    assert [[item["rule"] for item in page["items"]] for page in shown] == [["speed"], [], []]
    assert "this run had 35 % of the processor time" in shown[0]["items"][0]["text"]


def test_unknown_figure_is_404_and_names_those_that_exist(sqlite_service: RunningService) -> None:
    study = started(sqlite_service.client, {"kind": "table"})
    answer = sqlite_service.client.get(f"{STUDIES}/{study}/figures/none")
    assert answer.status_code == 404
    assert "it has f0" in answer.json()["detail"]


def test_figure_is_a_file_for_a_paper_in_every_format(service: RunningService) -> None:
    study = started(service.client, {"kind": "curves"}, {"kind": "table"})
    finish(service, study)
    at = f"{STUDIES}/{study}/figures"
    texts = {}
    for form, media_type, ending in (
        ("csv", "text/csv", "csv"),
        ("matplotlib", "text/x-python", "py"),
        ("caption", "text/plain", "txt"),
    ):
        answer = service.client.get(f"{at}/f0", params={"format": form, "theme": "dark"})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith(media_type)
        assert answer.headers["content-disposition"] == f'attachment; filename="f0.{ending}"'
        texts[form] = answer.text
    rows = list(csv.DictReader(io.StringIO(texts["csv"])))
    assert {row["series"] for row in rows} == {"PAAC", "A3C"}, "bands stand beside their lines"
    assert {row["source"] for row in rows} == {"CartPole", "Acrobot"}
    drawn = figure(service.client, study)
    assert texts["caption"].lower().startswith(drawn["caption"].lower())
    assert texts["caption"].strip().endswith(drawn["finding"])
    ast.parse(texts["matplotlib"])
    # As wide as asked: two panels beside each other, or one below the other.
    narrow = service.client.get(f"{at}/f0", params={"format": "matplotlib", "width": 300}).text
    assert narrow != texts["matplotlib"]


def test_table_is_a_file_as_csv_latex_or_caption(sqlite_service: RunningService) -> None:
    study = started(sqlite_service.client, {"kind": "table"})
    finish(sqlite_service, study)
    at = f"{STUDIES}/{study}/figures/f0"
    table = list(csv.reader(io.StringIO(sqlite_service.client.get(at, params={"format": "csv"}).text)))
    titles, sources, *rows = table
    assert titles == [
        "Environment",
        "PAAC",
        "A3C",
        *(f"{arm}: runs {of}" for arm in ("PAAC", "A3C") for of in ("in", "planned")),
    ]
    assert sources[1] == "ours: last 100 training episodes; mean of the last training scores of 3 runs"
    assert rows[0] == ["CartPole", "20.0", "21.0", "3", "3", "3", "3"]
    latex = sqlite_service.client.get(at, params={"format": "latex"})
    assert latex.headers["content-disposition"] == 'attachment; filename="f0.tex"'
    assert r"    Environment & PAAC\textsuperscript{1} & A3C\textsuperscript{1} \\" in latex.text
    assert r"    CartPole & 20 & 21 \\" in latex.text
    notes = r"\textsuperscript{1}last 100 training episodes; mean of the last training scores of 3 runs.}"
    assert notes in latex.text
    caption = sqlite_service.client.get(at, params={"format": "caption"}).text
    assert caption.startswith("Mean of the last training scores of 3 runs; 12 of 12 runs are in.")
    refused = sqlite_service.client.get(at, params={"format": "matplotlib"})
    [error] = refused.json()["errors"]
    assert (refused.status_code, error["field"]) == (422, "format")


def test_figure_has_no_latex(sqlite_service: RunningService) -> None:
    study = started(sqlite_service.client, {"kind": "curves"})
    refused = sqlite_service.client.get(f"{STUDIES}/{study}/figures/f0", params={"format": "latex"})
    [error] = refused.json()["errors"]
    assert (refused.status_code, error["field"]) == (422, "format")
