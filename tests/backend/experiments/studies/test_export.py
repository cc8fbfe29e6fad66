import ast
import csv
import io
import json
import zipfile
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select

from backend.db import ExperimentCell
from backend.db.engine import writing
from backend.drawing.export_series import COLUMNS
from tests.backend.experiments.figures.finished import ARMS, STUDIES, finish, started
from tests.support.rows import evaluation_row
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_export_has_figures_with_scripts_runs_settings_and_versions(service: RunningService) -> None:
    space = {"config.learning_rate": {"distribution": "log_uniform", "low": 1e-4, "high": 1e-2}}
    figures: list[dict[str, Any]] = [
        {"kind": "scatter", "setting": "config.learning_rate"}, {"kind": "curves"}, {"kind": "table"},
        {"kind": "stacked_bars", "metrics": ["paac/time_learning"]}, {"kind": "sorted"}, {"kind": "games"},
        {"kind": "table", "id": "runs"},
    ]  # fmt: skip
    arms = [ARMS[0] | {"label": "=1+1"}, *ARMS[1:]]
    study = started(service.client, *figures, draws={"n": 3, "space": space}, arms=arms)
    finish(service, study)
    with writing(service.engine) as session:
        run_id = session.scalars(select(ExperimentCell.run_id).where(ExperimentCell.number == 0)).one()
        later = datetime(2026, 1, 2, tzinfo=UTC)
        # As of a method that keeps its best parameters and evaluates them again at the end.
        session.add(evaluation_row(str(run_id), 10_000, 999.0, requested_at=later))
    answer = service.client.get(f"{STUDIES}/{study}/export")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        files = {name.partition("/")[2]: archive.read(name).decode() for name in archive.namelist()}
    scripts = {f"f{at}.py" for at in range(6) if at != 2}
    assert files.keys() == scripts | {f"f{at}.csv" for at in range(6)} | {
        "README.md", "study.json", "runs.csv", "scores.csv", "figure-runs.csv", "specs.jsonl",
        "versions.json", "f2.tex", "figure-runs.tex",
    }  # fmt: skip
    curves = ast.literal_eval(files["f1.py"].split("FIGURE = ", 1)[1].split("\n\n", 1)[0])
    titles = [(text["panel"], round(text["x"], 6), text["y"], text["text"]) for text in curves["texts"]]
    assert titles == [(0, 0.5, 1.0, "CartPole"), (1, 0.5, 1.0, "Acrobot")]
    [first, *_] = csv.DictReader(io.StringIO(files["runs.csv"]))
    assert [first[name] for name in ("training_score", "last_evaluation", "best_parameters")] == [
        "10.0",
        "110.0",
        "",
    ]
    assert first["training_time_s"] == "20.0"
    of_first = [row for row in csv.reader(io.StringIO(files["scores.csv"])) if row[0] == first["run"]]
    assert of_first == [
        [first["run"], "training", "10000", "20.0", "10.0", ""],  # of four episodes, not of 100
        *(
            [first["run"], "evaluation", steps, seconds, mean, "30"]
            for steps, seconds, mean in (
                ("5000", "5.0", "9.0"),
                ("10000", "10.0", "110.0"),
                ("10000", "10.0", "999.0"),
            )
        ),
    ]
    assert len(files["runs.csv"].splitlines()) == len(files["specs.jsonl"].splitlines()) + 1 == 13
    assert "highest score 31" in files["README.md"]
    assert files["f1.csv"].splitlines()[-1].split(",")[COLUMNS.index("n")] == "3"
    assert "CartPole,20.0,21.0" in files["f2.csv"]
    for name in ("f2.csv", "runs.csv"):
        assert ",'=1+1," in files[name], "text, and no formula of a spreadsheet"
        assert ",=" not in files[name]
    again = service.client.post(STUDIES, json={"study": json.loads(files["study.json"])})
    assert again.status_code == 201, again.text
    for name in scripts:
        compile(files[name], name, "exec")
