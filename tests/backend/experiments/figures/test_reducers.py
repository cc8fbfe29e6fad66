import json
from typing import Any

import pytest
from sqlalchemy import select

from backend.db import ExperimentCell
from backend.db.engine import writing
from tests.backend.experiments.figures.finished import figure, finish, started
from tests.support.service import RunningService

pytestmark = pytest.mark.service


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
        last = (
            select(ExperimentCell)
            .where(ExperimentCell.experiment_id == study)
            .order_by(ExperimentCell.number.desc())
            .limit(1)
        )
        session.delete(session.scalars(last).one())
    captions = [figure(sqlite_service.client, study, f"f{at}")["caption"] for at in range(2)]
    assert captions == [
        "relative to A3C: mean of the last training scores of 3 runs; 6 of 6 runs are in",
        "training time to the best score of A3C, median of 3 runs; 6 of 6 runs are in",
    ]


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
