"""Figures of a study over REST, whose runs have scores chosen so that the reduced values are known."""

import ast
import csv
import io
import json
import zipfile
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from httpx import Client
from sqlalchemy import select

from backend.analysis.figures.export_series import COLUMNS
from backend.analysis.metrics import repository as metrics
from backend.analysis.metrics.catalogue import describe
from backend.db import LiveSettings, Run, Series, StudyCell
from backend.db.engine import reading, writing
from backend.experiments.studies import reduction, table_files
from backend.experiments.studies import service as studies
from backend.experiments.studies.tables import Column, Table, TableCell, TableRow
from backend.runs.runs import service as runs
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from backend.statistics.cells import Cell, Reduction
from tests.support.rows import PATHS, add_attempt, evaluation_row, make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service

STUDIES = "/api/v1/studies"
ARMS = [{"label": "PAAC", "algorithm": "paac"}, {"label": "A3C", "algorithm": "a3c"}]


def started(client: Client, *figures: dict[str, Any], **changes: Any) -> str:
    named = [{"id": f"f{at}", "title": f"F{at}"} | figure for at, figure in enumerate(figures)]
    study = {
        "name": "s", "arms": ARMS, "environments": ["CartPole-v1", "Acrobot-v1"], "draws": {"n": 3},
        "run": {"stop": {"agent_steps": 10_000}}, "figures": named, "concurrency": 100,
    }  # fmt: skip
    answer = client.post(STUDIES, json={"study": study | changes})
    assert answer.status_code == 201, answer.text
    study_id: str = answer.json()["id"]
    return study_id


def score_of(cell: StudyCell) -> float:
    """Of the first arm 10, 20, 30, of the second 1 more for each; on Acrobot the negative."""
    score = 10.0 * (cell.draw + 1) + cell.arm
    return score if cell.environment == "CartPole-v1" else -score


def finish(service: RunningService, study_id: str, *, skipped: int = 0, evaluated: float = 100.0) -> None:
    """Finish the runs of the study but the last ones, with returns that rise to their scores in 20 s, and a
    last evaluation that is above them by `evaluated`."""
    with writing(service.engine) as session:
        cells = session.scalars(
            select(StudyCell).where(StudyCell.study_id == study_id).order_by(StudyCell.number)
        ).all()
        for cell in cells[: len(cells) - skipped]:
            run = session.get_one(Run, cell.run_id)
            score = score_of(cell)
            points = PointsEvent(
                metric="rollout/episode_return", source="", agent_steps=[2_500, 5_000, 7_500, 10_000],
                frames=[2_500, 5_000, 7_500, 10_000], wall_time_s=[5.0, 10.0, 15.0, 20.0],
                episodes=[1, 2, 3, 4], value=[score] * 4,
            )  # fmt: skip
            metrics.append(session, run.id, 1, 1, [points])
            shares = PointsEvent(
                metric="paac/time_learning", source="", agent_steps=[1, 2], frames=[1, 2],
                wall_time_s=[1.0, 2.0], episodes=[0, 0], value=[0.2, 0.2 + 0.1 * cell.draw],
            )  # fmt: skip
            of_actor = shares.model_copy(update={"source": "actor 0", "value": [0.9, 0.9]})
            metrics.append(session, run.id, 1, 1, [shares, of_actor])
            for steps, mean in ((5_000, score - 1), (10_000, score + evaluated)):
                session.add(evaluation_row(run.id, steps, mean))
            for after in PATHS[RunState.FINISHED]:
                runs.transition(session, run, after, "for the test")
            run.score, run.agent_steps, run.wall_time_s = score, 10_000, 20.0


def figure(client: Client, study_id: str, name: str = "f0", **params: Any) -> dict[str, Any]:
    answer = client.get(f"{STUDIES}/{study_id}/figures/{name}", params=params)
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()
    return content


def numbers(values: Any) -> list[float]:
    if isinstance(values, list):
        return [float(value) for value in values]
    decoded = np.frombuffer(b64decode(values["bdata"]), f"<{values['dtype']}")
    return [float(value) for value in decoded]


def cells_of(table: dict[str, Any]) -> dict[str, list[float | None]]:
    return {row["label"]: [cell["value"] for cell in row["cells"]] for row in table["rows"] + table["foot"]}


@pytest.mark.parametrize(
    ("value", "text"),
    [(44.985, "44.99"), (45.0, "45"), (0.12345, "0.1235"), (12_345.678, "12,345.7"),
     (1_234_567.8, "1,234,570"), (500, "500"), (12_345, "12,345"), (-20.125, "−20.13"), (0.0, "0"),
     (123_456_789, "123,456,789"), (2.5e9, "2.5e9"), (0.00012, "1.2e−4"), (-1.5e-5, "−1.5e−5")],
)  # fmt: skip
def test_finding_states_numbers_as_the_table_beside_it(value: float, text: str) -> None:
    assert reduction.in_tables(value) == text


def test_table_has_the_rule_of_its_figure(service: RunningService) -> None:
    rules = [{"rule": "last"}, {"rule": "best_of", "k": 2}, {"rule": "mean_of_best", "k": 2},
             {"rule": "last", "source": "evaluations"}, {"rule": "last", "ratio_to": "PAAC"}]  # fmt: skip
    study = started(service.client, *({"kind": "table", "reduction": rule} for rule in rules))
    finish(service, study)
    wanted = [[20.0, 21.0], [20.0, 21.0], [25.0, 26.0], [120.0, 121.0], [1.0, 1.05]]
    for at, values in enumerate(wanted):
        answer = figure(service.client, study, f"f{at}")
        assert cells_of(answer["table"])["CartPole"] == values, rules[at]
    ratios = cells_of(answer["table"])
    answer = figure(service.client, study, "f3")
    assert answer["caption"].startswith("mean of the last evaluations")
    assert (answer["n_in"], answer["n_planned"]) == (12, 12)
    assert answer["finding"].startswith("CartPole: highest A3C with 121, lowest PAAC with 120.")
    table = figure(service.client, study)["table"]
    # Raw scores of different environments have no mean.
    assert table["foot"] == []
    assert ratios["Mean over 2 environments"] == pytest.approx([1.0, 1.05])
    assert [column["source"] for column in table["columns"]] == ["name", "ours", "ours"]
    assert "last 100 training episodes" in table["columns"][1]["how"]


def test_captions_say_which_curves_and_runs_are_left_out(
    sqlite_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduction, "MAX_RUNS_PER_CURVE", 2)
    monkeypatch.setattr(reduction, "MAX_CURVES", 3)
    study = started(sqlite_service.client, {"kind": "curves"}, {"kind": "sorted"})
    finish(sqlite_service, study)
    curves, ordered = (figure(sqlite_service.client, study, name)["caption"] for name in ("f0", "f1"))
    assert curves == (
        "mean of the last training scores of 3 runs; lines: means over 4 % of the axis, band ± 1 s.e.; "
        "each curve is of the first 2 runs; the first 3 of 4 curves are drawn; 12 of 12 runs are in"
    )
    assert ordered.startswith("last training score of each run; ")
    assert ordered.endswith("; the first 3 of 4 curves are drawn")


def test_each_arm_of_a_table_is_headed_by_its_own_protocol(sqlite_service: RunningService) -> None:
    study = started(
        sqlite_service.client, {"kind": "table", "reduction": {"rule": "last", "source": "evaluations"}},
        environments=["ALE/Pong-v5"], draws={"n": 1},
        arms=[{"label": "A3C", "algorithm": "a3c"}, {"label": "DQN", "algorithm": "dqn"}],
    )  # fmt: skip
    _, a3c, dqn = figure(sqlite_service.client, study)["table"]["columns"]
    assert (a3c["how"].split(";")[0], dqn["how"].split(";")[0]) == ("no-op starts", "no-op starts, 5 min")


def test_shown_arms_are_normalised_by_the_references_of_their_own_protocol(
    sqlite_service: RunningService,
) -> None:
    study = started(
        sqlite_service.client,
        {"kind": "table", "reduction": {"normalise": "human", "source": "evaluations"}, "arms": ["DQN"]},
        environments=["ALE/Pong-v5"], draws={"n": 1},
        arms=[{"label": "A3C", "algorithm": "a3c"}, {"label": "DQN", "algorithm": "dqn"}],
    )  # fmt: skip
    finish(sqlite_service, study, evaluated=0.0)
    # DQN scores -11; of noop_starts_5min random play has -20.7, a human tester 9.3.
    value = cells_of(figure(sqlite_service.client, study)["table"])["Pong"]
    assert value == [pytest.approx(100 * (-11 + 20.7) / (9.3 + 20.7))]


def test_run_that_was_resumed_with_another_limit_is_not_in(sqlite_service: RunningService) -> None:
    study = started(sqlite_service.client, {"kind": "table"}, {"kind": "curves"})
    finish(sqlite_service, study)
    with writing(sqlite_service.engine) as session:
        first, second = session.scalars(
            select(Run)
            .join(StudyCell, StudyCell.run_id == Run.id)
            .where(StudyCell.study_id == study, StudyCell.environment == "CartPole-v1", StudyCell.arm == 0)
            .order_by(StudyCell.draw)
            .limit(2)
        )
        first.attempt = second.attempt = 2
        first.spec = first.spec | {"stop": first.spec["stop"] | {"agent_steps": 20_000}}
        first.score = 500.0
    answer = figure(sqlite_service.client, study)
    assert cells_of(answer["table"])["CartPole"] == [25.0, 21.0]
    assert (answer["n_in"], answer["n_planned"]) == (11, 12)
    curve = next(t for t in figure(sqlite_service.client, study, "f1")["figure"]["data"] if t.get("name"))
    assert set(numbers(curve["customdata"])) == {2}
    progress = sqlite_service.client.get(f"{STUDIES}/{study}").json()["progress"]
    assert next(group["score"] for group in progress if group["environment"] == "CartPole-v1") == 25.0


@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.STOPPED])
def test_cell_of_a_changed_run_says_so_and_is_filled_again(
    sqlite_service: RunningService, state: RunState
) -> None:
    client = sqlite_service.client
    study = started(client, {"kind": "table"}, draws={"n": 1}, environments=["CartPole-v1"], arms=ARMS[:1])
    with writing(sqlite_service.engine) as session:
        run = session.scalars(select(Run)).one()
        for after in PATHS[state]:
            runs.transition(session, run, after, "for the test")
        run.score, run.agent_steps = 50.0, 10_000
        # Changed live and changed back: it has the specification of its cell again.
        for version in (1, 2):
            live = LiveSettings(run_id=run.id, version=version, requested_at=datetime.now(UTC), changes={})
            live.state, live.agent_steps = "applied", 100 * version
            session.add(live)
        changed = run.id
    assert figure(client, study)["n_in"] == 0
    assert client.get(f"{STUDIES}/{study}").json()["runs"] == {"changed": 1}
    with zipfile.ZipFile(io.BytesIO(client.get(f"{STUDIES}/{study}/export").content)) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/runs.csv")]
        [row] = csv.DictReader(io.StringIO(archive.read(name).decode()))
    assert row["changed"] == "True"
    with writing(sqlite_service.engine) as session:
        studies.reconcile(session, study)
    retried = client.post(f"{STUDIES}/{study}/retry")
    assert retried.status_code == 200, retried.text
    with writing(sqlite_service.engine) as session:
        studies.reconcile(session, study)
    [cell] = client.get(f"{STUDIES}/{study}/cells").json()["items"]
    assert (cell["state"], cell["run"] != changed) == ("queued", True)
    assert client.get(f"/api/v1/runs/{changed}").json()["state"] == state


def test_run_of_a_cell_that_an_earlier_version_planned_counts_after_a_second_attempt(
    sqlite_service: RunningService,
) -> None:
    study = started(sqlite_service.client, {"kind": "table"}, environments=["CartPole-v1"], concurrency=1)
    with writing(sqlite_service.engine) as session:
        cells = session.scalars(select(StudyCell).where(StudyCell.started.is_(False))).all()
        for cell in cells:
            cell.key = "0" * 32  # of the settings that the earlier version had
    while any(not cell.started for cell in cells):
        with writing(sqlite_service.engine) as session:
            run = session.scalars(select(Run).where(Run.state == RunState.QUEUED)).one()
            for after in PATHS[RunState.FINISHED]:
                runs.transition(session, run, after, "for the test")
            run.score, run.attempt = 1.0, 2
        with writing(sqlite_service.engine) as session:
            studies.reconcile(session, study)
            cells = session.scalars(select(StudyCell)).all()
    assert figure(sqlite_service.client, study)["n_in"] == len(cells) - 1


def test_values_of_a_metric_have_the_unit_of_its_charts(sqlite_service: RunningService) -> None:
    rule = {"rule": "top", "k": 1, "metric": "system/rss_bytes"}
    study = started(sqlite_service.client, {"kind": "games", "reduction": rule}, draws={"n": 1})
    with writing(sqlite_service.engine) as session:
        for run_id in session.scalars(select(StudyCell.run_id).where(StudyCell.study_id == study)):
            points = PointsEvent(
                metric="system/rss_bytes", source="", agent_steps=[1], frames=[1], wall_time_s=[1.0],
                episodes=[0], value=[400.0 * 2**20],
            )  # fmt: skip
            metrics.append(session, run_id or "", 1, 1, [points])
    finish(sqlite_service, study)
    drawn = figure(sqlite_service.client, study)["figure"]
    assert drawn["layout"]["xaxis"]["title"]["text"] == "Memory (MiB)"
    assert {value for bars in drawn["data"] for value in numbers(bars["x"])} == {400.0}


def test_table_names_the_protocol_of_kept_parameters_and_the_published_columns_of_one(
    sqlite_service: RunningService,
) -> None:
    rule = {"rule": "best_kept", "normalise": "dqn"}
    published = ["human@noop_starts_5min", "Gorila"]
    study = started(
        sqlite_service.client, {"kind": "table", "reduction": rule, "published": published},
        environments=["ALE/Assault-v5"], arms=[{"label": "DQN", "algorithm": "dqn"}], draws={"n": 1},
    )  # fmt: skip
    answer = figure(sqlite_service.client, study)
    columns = answer["table"]["columns"][1:]
    assert [(column["title"], column["source"]) for column in columns] == [
        ("DQN", "ours"), ("human", "published"), ("Gorila", "published"), ("Gorila", "published")
    ]  # fmt: skip
    assert columns[0]["how"].startswith("no-op starts, 5 min; DQN-normalised: mean of the best parameters")
    assert "training" not in columns[0]["how"]
    assert [column["how"].partition(";")[0] for column in columns[1:]] == [
        "no-op starts, 5 min", "no-op starts, 5 min", "human starts"
    ]  # fmt: skip
    assert {column["unit"] for column in columns} == {"%"}
    assert all("; DQN-normalised here; " in column["how"] for column in columns[1:])
    assert columns[2]["how"].endswith("; trained for up to 6 days with 100 actors and learners and 31 shards")
    # 100 (score - random) / (DQN - random) with the scores of the same starts: 222.4, 3358.6; 166.9, 3332.3.
    assert cells_of(answer["table"])["Assault"][1:] == pytest.approx([40.6224, 39.1560, 32.5062], rel=1e-5)


def test_words_of_a_rule_are_whole_whatever_an_arm_is_called(sqlite_service: RunningService) -> None:
    arms = [{"label": label, "algorithm": "paac"} for label in ("PAAC; 8 actors", "PAAC; 16 actors")]
    rule = {"rule": "last", "source": "training", "ratio_to": "PAAC; 8 actors"}
    timed = {"rule": "time_to", "source": "training", "references": {"CartPole-v1": 9.0}}
    study = started(
        sqlite_service.client, {"kind": "table", "reduction": rule}, {"kind": "speedups", "reduction": timed},
        arms=arms, environments=["CartPole-v1"],
    )  # fmt: skip
    words = "relative to PAAC; 8 actors: mean of the last training scores of 3 runs"
    drawn = figure(sqlite_service.client, study)
    assert drawn["caption"] == f"{words}; 0 of 6 runs are in"
    assert [column["how"] for column in drawn["table"]["columns"][1:]] == [
        f"last 100 training episodes; {words}"
    ] * 2
    assert figure(sqlite_service.client, study, "f1")["caption"] == (
        "speed-up over the first of its kind: training time to the reference score, median of 3 runs; "
        "0 of 6 runs are in"
    )


def test_words_of_a_rule_count_the_runs_of_the_shown_arms(sqlite_service: RunningService) -> None:
    plain = {"rule": "last", "source": "training"}
    rules = [plain | {"ratio_to": "A3C"}, {"rule": "time_to", "reference_arm": "A3C", "source": "training"}]
    study = started(
        sqlite_service.client,
        *({"kind": "table", "reduction": rule, "arms": ["PAAC"]} for rule in rules),
    )
    finish(sqlite_service, study)
    with writing(sqlite_service.engine) as session:  # the hidden arm has fewer runs on one environment
        last = select(StudyCell).where(StudyCell.study_id == study).order_by(StudyCell.number.desc()).limit(1)
        session.delete(session.scalars(last).one())
    captions = [figure(sqlite_service.client, study, f"f{at}")["caption"] for at in range(2)]
    assert captions == [
        "relative to A3C: mean of the last training scores of 3 runs; 6 of 6 runs are in",
        "training time to the best score of A3C, median of 3 runs; 6 of 6 runs are in",
    ]


def test_times_to_the_score_of_an_arm_that_has_none_yet_count_all_runs(
    sqlite_service: RunningService,
) -> None:
    rule = {"rule": "time_to", "reference_arm": "PAAC"}
    rules = rule, rule | {"source": "evaluations"}
    study = started(sqlite_service.client, *({"kind": "reached", "reduction": given} for given in rules))
    before = figure(sqlite_service.client, study)
    assert before["caption"].endswith("; 0 of 12 runs are in")
    assert before["finding"] == ""
    finish(sqlite_service, study)
    findings = [figure(sqlite_service.client, study, f"f{at}")["finding"] for at in range(2)]
    # Fewer episodes than a score at a time needs: the last score counts, at no known time.
    assert findings[0].endswith("; best scores of PAAC: CartPole 20, Acrobot −20.")
    assert findings[1].endswith(
        "; best scores of PAAC (mean) and when its runs had theirs (median): "
        "CartPole 120 after 10 s, Acrobot 80 after 10 s."
    )


@pytest.mark.parametrize("kind", ["speedups", "table", "games"])
def test_ratios_of_times_to_the_score_of_an_arm_are_drawn_with_and_without_that_score(
    sqlite_service: RunningService, kind: str
) -> None:
    rule = {"rule": "time_to", "reference_arm": "A3C", "ratio_to": "A3C", "source": "evaluations"}
    study = started(sqlite_service.client, {"kind": kind, "reduction": rule})
    before = figure(sqlite_service.client, study)
    assert (before["n_in"], before["n_planned"]) == (0, 12)
    finish(sqlite_service, study)
    after = figure(sqlite_service.client, study)
    assert (after["n_in"], after["n_planned"]) == (12, 12)


def test_reference_arm_that_is_not_shown_is_neither_counted_nor_drawn(sqlite_service: RunningService) -> None:
    rule = {"rule": "last", "ratio_to": "A3C"}
    kinds: list[dict[str, Any]] = [
        {"kind": "table", "reduction": rule},
        {"kind": "sorted"},
        {"kind": "speedups", "reduction": rule},
        {"kind": "scatter", "setting": "config.gamma"},
        {"kind": "bars", "metrics": ["paac/time_learning"], "reduction": rule},
    ]
    study = started(sqlite_service.client, *(kind | {"arms": ["PAAC"]} for kind in kinds))
    finish(sqlite_service, study)
    for at, kind in enumerate(kinds):
        drawn = figure(sqlite_service.client, study, f"f{at}")
        assert (drawn["n_in"], drawn["n_planned"]) == (6, 6), kind
        assert drawn["caption"].endswith("; 6 of 6 runs are in"), kind
        assert "A3C" not in json.dumps(drawn["figure"]), kind


def test_runs_that_a_rule_leaves_out_are_not_planned(sqlite_service: RunningService) -> None:
    study = started(sqlite_service.client, {"kind": "table", "reduction": {"rule": "best_of", "k": 2}})
    finish(sqlite_service, study)
    drawn = figure(sqlite_service.client, study)
    assert (drawn["n_in"], drawn["n_planned"]) == (8, 8)
    assert drawn["caption"].endswith("; 8 of 8 runs are in")


def test_counts_are_of_the_first_run_that_has_the_metrics(sqlite_service: RunningService) -> None:
    metric = "paac/time_learning"
    study = started(sqlite_service.client, {"kind": "counts", "metrics": [metric]})
    assert figure(sqlite_service.client, study)["n_in"] == 0
    with writing(sqlite_service.engine) as session:
        cells = session.scalars(select(StudyCell).order_by(StudyCell.number)).all()
        for cell, value in zip(cells[1:3], (2.0, 3.0), strict=True):
            points = PointsEvent(
                metric=metric, agent_steps=[1, 2, 3], frames=[1, 2, 3], wall_time_s=[1.0, 2.0, 3.0],
                episodes=[0, 0, 0], value=[value, value + 5, value + 1],
            )  # fmt: skip
            metrics.append(session, cell.run_id or "", 1, 1, [points])
    drawn = figure(sqlite_service.client, study)
    assert drawn["n_in"] == 1
    divisor = describe(metric).divisor
    assert numbers(drawn["figure"]["data"][0]["y"]) == [value / divisor for value in (2.0, 7.0, 3.0)]
    assert drawn["finding"] == "Time in learning between 2 and 7, 3 at the end."


def test_captions_of_figures_over_time_count_runs_that_trained_beside_others(service: RunningService) -> None:
    study = started(service.client, {"kind": "curves", "x": "hours"}, {"kind": "curves"})
    finish(service, study)
    with reading(service.engine) as session:
        cells = session.scalars(select(StudyCell).order_by(StudyCell.number)).all()
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


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([2.0, 7.0, 3.0], "between 2 and 7, 3 at the end"),
        ([5.0, 5.0], "5"),
        ([5.0, 5.0, np.nan], "5, NaN at the end"),
        ([1.0, np.inf, 2.0, np.nan], "between 1 and 2, NaN at the end"),
        ([np.nan, np.inf], "∞"),
    ],
)
def test_range_is_of_the_values_that_are_finite(values: list[float], words: str) -> None:
    assert reduction.range_in_words(np.array(values)) == words


def test_unfinished_runs_are_planned_and_not_in(service: RunningService) -> None:
    study = started(service.client, {"kind": "table"})
    empty = figure(service.client, study)
    assert (empty["n_in"], empty["n_planned"], empty["finding"]) == (0, 12, "")
    assert cells_of(empty["table"])["CartPole"] == [None, None]
    finish(service, study, skipped=4)
    part = figure(service.client, study)
    assert (part["n_in"], part["n_planned"]) == (8, 12)
    assert cells_of(part["table"])["CartPole"] == [15.0, 16.0]


def test_stopped_run_with_a_score_is_not_in(sqlite_service: RunningService) -> None:
    study = started(sqlite_service.client, {"kind": "table"})
    finish(sqlite_service, study)
    with writing(sqlite_service.engine) as session:
        first = StudyCell.study_id == study, StudyCell.number == 0
        cell = session.scalars(select(StudyCell).where(*first)).one()
        session.get_one(Run, cell.run_id).state = RunState.STOPPED
    cut_short = figure(sqlite_service.client, study)
    assert (cut_short["n_in"], cut_short["n_planned"]) == (11, 12)
    assert cells_of(cut_short["table"])["CartPole"] == [25.0, 21.0]


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
        for cell in session.scalars(select(StudyCell)).all():
            session.get_one(Run, cell.run_id).wall_time_s = 7_200.0
    long = figure(service.client, study, "f1")["figure"]["layout"]
    assert long["xaxis"]["title"]["text"] == "Training time (h)"


def test_curve_that_was_read_before_has_the_points_that_came_since(service: RunningService) -> None:
    study_id = started(service.client, {"kind": "curves"})
    finish(service, study_id)
    before = figure(service.client, study_id)
    assert figure(service.client, study_id) == before
    with writing(service.engine) as session:
        cell = session.scalars(select(StudyCell).where(StudyCell.number == 0)).one()
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


def test_bars_are_means_of_metrics_by_setting(service: RunningService) -> None:
    arms = [{"label": f"n_e {n}", "algorithm": "paac", "config": {"n_e": n}} for n in (4, 8)]
    wanted = {"kind": "stacked_bars", "metrics": ["paac/time_learning"], "setting": "config.n_e"}
    study = started(
        service.client, wanted, wanted | {"kind": "table"}, arms=arms, environments=["CartPole-v1"]
    )
    finish(service, study)
    answer = figure(service.client, study)
    [bar] = answer["figure"]["data"]
    assert bar["x"] == ["4", "8"]
    assert numbers(bar["y"]) == pytest.approx([0.25, 0.25])
    assert (answer["n_in"], answer["n_planned"]) == (6, 6)
    table = figure(service.client, study, "f1")["table"]
    assert cells_of(table)["n_e 4"] == [pytest.approx(0.25)]


def test_axis_of_bars_names_what_each_metric_counts(sqlite_service: RunningService) -> None:
    metrics_of_ga3c = ["ga3c/training_queue", "ga3c/prediction_batch"]
    study = started(sqlite_service.client, {"kind": "bars", "metrics": metrics_of_ga3c})
    drawn = figure(sqlite_service.client, study)["figure"]
    assert drawn["layout"]["yaxis"]["title"]["text"] == ", ".join(
        describe(metric).axis for metric in metrics_of_ga3c
    )


def test_column_of_a_metric_is_not_headed_as_a_score(sqlite_service: RunningService) -> None:
    rule = {"rule": "top", "k": 2, "metric": "paac/time_learning"}
    study = started(sqlite_service.client, {"kind": "table", "reduction": rule})
    _, paac, _ = figure(sqlite_service.client, study)["table"]["columns"]
    assert "top 2" in paac["how"]
    assert "episodes" not in paac["how"]


def test_mean_speed_ups_are_over_the_environments_of_all_arms() -> None:
    speedups = {"1": (1, 1, 1), "2": (2, None, 6), "4": (None, None, None), "16": (8, 9, 10)}
    cells = tuple(
        Cell(arm, environment, value, None, None, 1, 1, (0,), "")
        for arm, values in speedups.items()
        for environment, value in zip("abc", values, strict=True)
    )
    common, means = reduction.mean_speedups(Reduction(cells, "ratio", "", ""))
    assert (common, means) == ({"a", "c"}, {"1": 1.0, "2": 4.0, "16": 9.0})


def test_bars_of_arms_with_equal_settings_stand_apart(sqlite_service: RunningService) -> None:
    arms = [
        {"label": f"rate {rate}", "algorithm": "paac", "config": {"n_e": 32, "learning_rate": rate}}
        for rate in (0.001, 0.002)
    ]
    wanted = {"kind": "stacked_bars", "metrics": ["paac/time_learning"], "setting": "config.n_e"}
    study = started(sqlite_service.client, wanted, arms=arms, environments=["CartPole-v1"])
    finish(sqlite_service, study)
    [bar] = figure(sqlite_service.client, study)["figure"]["data"]
    assert bar["x"] == ["32", "32 rate 0.002"]


def test_speed_ups_are_relative_to_the_first_arm_of_each_algorithm(service: RunningService) -> None:
    arms = [{"label": f"{n} actors", "algorithm": "a3c", "config": {"n_actors": n}} for n in (1, 2)]
    rule = {"rule": "time_to", "references": {"CartPole-v1": 9.0}, "source": "training"}
    wanted = {"kind": "speedups", "reduction": rule}
    study = started(service.client, wanted, arms=arms, environments=["CartPole-v1"])
    finish(service, study)
    with writing(service.engine) as session:  # a hundred episodes count as a score
        for cell in session.scalars(select(StudyCell)):
            series = session.scalars(select(Series).where(Series.run_id == cell.run_id)).all()
            assert series
            n = 200
            times = np.linspace(0.0, 100.0 / (cell.arm + 1), n).tolist()
            steps = list(range(20_000, 20_000 + n))
            points = PointsEvent(
                metric="rollout/episode_return", source="", agent_steps=steps, frames=steps,
                wall_time_s=times, episodes=list(range(n)), value=[50.0] * n,
            )  # fmt: skip
            metrics.append(session, cell.run_id or "", 1, 2, [points])
    answer = figure(service.client, study)
    assert cells_of(answer["table"])["1 actors"] == [1.0, 1.0]
    assert cells_of(answer["table"])["2 actors"][0] == pytest.approx(2.0, rel=0.01)
    assert answer["finding"] == "2 actors: 2×."


def test_time_that_was_read_before_is_that_of_the_points_that_came_since(service: RunningService) -> None:
    rule = {"rule": "time_to", "references": {"CartPole-v1": 40.0}, "source": "training"}
    wanted = {"kind": "table", "reduction": rule}
    study = started(service.client, wanted, environments=["CartPole-v1"], draws={"n": 1})
    finish(service, study)
    before = cells_of(figure(service.client, study)["table"])["CartPole"]
    with writing(service.engine) as session:
        cell = session.scalars(select(StudyCell).where(StudyCell.number == 0)).one()
        run = session.get_one(Run, cell.run_id)
        later = PointsEvent(
            metric="rollout/episode_return", source="", agent_steps=list(range(20_000, 20_100)),
            frames=list(range(20_000, 20_100)), wall_time_s=[float(at) for at in range(30, 130)],
            episodes=list(range(5, 105)), value=[50.0] * 100,
        )  # fmt: skip
        run.revision += 1
        metrics.append(session, run.id, 1, run.revision, [later])
    after = cells_of(figure(service.client, study)["table"])["CartPole"]
    assert (before[0], after[0], after[1]) == (None, 125.0, before[1])


def test_missing_references_are_named_before_anything_is_started(service: RunningService) -> None:
    rules = {
        "normalise": {"source": "evaluations", "normalise": "human"},
        "references": {"rule": "time_to", "references": {"CartPole-v1": 9.0}},
    }
    for name, rule in rules.items():
        study = {
            "name": "s", "arms": ARMS, "environments": ["CartPole-v1", "Acrobot-v1"], "draws": {"n": 1},
            "run": {"stop": {"agent_steps": 10}},
            "figures": [{"id": "f", "title": "F", "kind": "table", "reduction": rule}],
        }  # fmt: skip
        answer = service.client.post(STUDIES, json={"study": study})
        [error] = answer.json()["errors"]
        assert (answer.status_code, error["field"]) == (422, f"study.figures.0.reduction.{name}")
        assert "Acrobot-v1" in error["message"]
    assert service.client.get("/api/v1/runs").json()["items"] == []


def test_profile_and_optimality_gap_are_of_normalised_scores(service: RunningService) -> None:
    rule = {"normalise": "human", "source": "evaluations"}
    games = ["ALE/Pong-v5", "ALE/Breakout-v5"]
    figures = [{"kind": kind, "reduction": rule} for kind in ("profile", "optimality_gap")]
    study = started(service.client, *figures, environments=games)
    assert figure(service.client, study)["n_in"] == 0
    finish(service, study, evaluated=0.0)
    # Last evaluations on Pong and Breakout are -10, -20 and -30, of A3C lower by 1.
    profile, gap = (figure(service.client, study, name) for name in ("f0", "f1"))
    pong = [100 * (score + 20.7) / (14.6 + 20.7) for score in (-10, -20, -30)]
    breakout = [100 * (score - 1.7) / (30.5 - 1.7) for score in (-10, -20, -30)]
    [paac, _] = profile["figure"]["data"]
    above = [np.mean([[value > tau for value in game] for game in (pong, breakout)])
             for tau in numbers(paac["x"])]  # fmt: skip
    assert numbers(paac["y"]) == pytest.approx(above)
    [bars] = gap["figure"]["data"]
    assert numbers(bars["y"])[0] == pytest.approx(100 - np.mean([*pong, *breakout]))
    assert (profile["n_in"], profile["n_planned"]) == (12, 12)
    assert "human-normalised" in profile["caption"]
    assert "over the same 2 of 2 environments" in profile["caption"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"reduction": {}}, "normalise"),
        ({"reduction": {"normalise": "human", "rule": "best_of", "k": 2}}, "rule"),
    ],
)
def test_profile_needs_normalised_scores_of_each_run(
    sqlite_service: RunningService, changes: dict[str, Any], field: str
) -> None:
    figures = [{"id": "f", "title": "F", "kind": "profile"} | changes]
    study = {"name": "s", "arms": ARMS, "environments": ["ALE/Pong-v5"], "draws": {"n": 1},
             "run": {"stop": {"agent_steps": 10_000}}, "figures": figures}  # fmt: skip
    answer = sqlite_service.client.post(STUDIES, json={"study": study})
    assert answer.status_code == 422
    assert f"study.figures.0.reduction.{field}" in answer.text
    assert sqlite_service.client.get("/api/v1/runs").json()["items"] == []


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


def test_csv_of_a_table_has_units_and_intervals() -> None:
    columns = [Column("Method", "", "name"), Column("Pong", "speed-up", "ours", unit="×")]
    row = TableRow("16 threads", [TableCell(12.5, 11.0, 14.0, 5, 6)])
    assert table_files.table_csv(
        Table(columns, [row], [TableRow("Mean", [TableCell(None)])])
    ).splitlines() == [
        "Method,Pong (×),Pong: lower bound (95 %),Pong: upper bound (95 %),Pong: runs in,Pong: runs planned",
        "name,ours: speed-up,,,,",
        "16 threads,12.5,11.0,14.0,5,6",
        "Mean,,,,,",
    ]


def test_latex_of_a_table_tells_columns_of_equal_titles_apart_and_has_no_command_of_a_name() -> None:
    columns = [
        Column("Method", "", "name"),
        Column("Pong", "no-op starts; 100 % of A_C", "ours", unit="×"),
        Column("Q*bert", "Mnih et al.", "published"),
        Column("Pong", "Mnih et al.", "published"),
    ]
    cells = [TableCell(1234.5678, 1200.0, -1.5), TableCell(0.0001), TableCell(7, n=1, planned=3)]
    rows = [TableRow("\t[best] \\input{a} & #1, λ", cells)]
    table = Table(columns, rows, [TableRow("Mean", [TableCell(None), TableCell(-2), TableCell(3)])])
    assert table_files.table_latex(table, "raw", "All ${runs}$.").splitlines() == [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"  \centering",
        r"  \caption{All \$\{runs\}\$. In brackets: 95 \% confidence intervals. "
        r"\textsuperscript{1}no-op starts; 100 \% of A\_C. \textsuperscript{2}published, Mnih et al.}",
        r"  \label{tab:raw}",
        r"  \begin{tabular}{lrrr}",
        r"    \toprule",
        r"    Method & Pong ($\times$)\textsuperscript{1} & Q*bert\textsuperscript{2} & "
        r"Pong\textsuperscript{2} \\",
        r"    \midrule",
        r"    {}[best] \textbackslash{}input\{a\} \& \#1, $\lambda$ & 1,234.57 [1,200, $-$1.5] & "
        r"1e$-$4 & 7 (1 of 3 runs) \\",
        r"    \midrule",
        r"    Mean & – & $-$2 & 3 \\",
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]


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
    answer = service.client.get(f"{STUDIES}/{study}/export")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        files = {name.partition("/")[2]: archive.read(name).decode() for name in archive.namelist()}
    scripts = {f"f{at}.py" for at in range(6) if at != 2}
    assert files.keys() == scripts | {f"f{at}.csv" for at in range(6)} | {
        "README.md", "study.json", "runs.csv", "figure-runs.csv", "specs.jsonl", "versions.json",
        "f2.tex", "figure-runs.tex",
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


def test_curves_of_the_best_settings_are_drawn_where_each_arm_has_one(service: RunningService) -> None:
    wanted = {"kind": "curves", "setting": "config.learning_rate",
              "reduction": {"rule": "mean_of_best", "k": 3, "of": "settings"}}  # fmt: skip
    study = started(service.client, wanted, draws={"n": 1})
    finish(service, study)
    drawn = figure(service.client, study)
    assert (drawn["n_in"], len(drawn["figure"]["data"]) > 0) == (4, True)
    assert "mean of 1 learning rate;" in drawn["caption"]
