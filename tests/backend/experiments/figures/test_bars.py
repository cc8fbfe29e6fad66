import pytest

from backend.drawing.catalogue import describe
from tests.backend.experiments.figures.finished import cells_of, figure, finish, numbers, started
from tests.support.service import RunningService

pytestmark = pytest.mark.service


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


def test_bars_of_the_top_arms_are_of_each_value_of_the_setting(sqlite_service: RunningService) -> None:
    arms = [
        {"label": f"{n_e}/{n_w}", "algorithm": "paac", "config": {"n_e": n_e, "n_w": n_w}}
        for n_e in (4, 8)
        for n_w in (1, 2)
    ]
    rule = {"rule": "top", "k": 1, "metric": "paac/time_learning"}
    wanted = {"kind": "bars", "metrics": ["paac/time_learning"], "setting": "config.n_e", "reduction": rule}
    study = started(sqlite_service.client, wanted, arms=arms, environments=["CartPole-v1"])
    finish(sqlite_service, study, skipped=1)  # the last run of 8/2, whose mean is then lower
    answer = figure(sqlite_service.client, study)
    [bar] = answer["figure"]["data"]
    assert bar["x"] == ["4/2", "8/1"]
    assert answer["n_in"] == 11
