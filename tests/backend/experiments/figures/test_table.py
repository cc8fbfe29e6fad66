import pytest

from tests.backend.experiments.figures.finished import cells_of, figure, finish, started
from tests.support.service import RunningService

pytestmark = pytest.mark.service


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


def test_column_of_a_metric_is_not_headed_as_a_score(sqlite_service: RunningService) -> None:
    rule = {"rule": "top", "k": 2, "metric": "paac/time_learning"}
    study = started(sqlite_service.client, {"kind": "table", "reduction": rule})
    _, paac, _ = figure(sqlite_service.client, study)["table"]["columns"]
    assert "top 2" in paac["how"]
    assert "episodes" not in paac["how"]
