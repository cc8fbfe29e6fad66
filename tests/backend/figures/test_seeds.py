from backend.db import Run
from backend.figures.seeds import group_names
from backend.specs.run import parse_run_spec
from tests.support.runs import CARTPOLE


def run(**changes) -> Run:
    spec = parse_run_spec(CARTPOLE | changes)
    return Run(
        algorithm=spec.algorithm,
        environment=spec.environment,
        group=spec.group,
        spec=spec.model_dump(mode="json"),
    )


def test_a_group_is_called_by_its_name_or_by_what_it_is() -> None:
    (named, plain) = group_names([run(group="wide"), run()])
    assert named == "wide"
    assert plain.endswith(" on CartPole")


def test_groups_of_one_name_are_told_apart_by_what_differs() -> None:
    names = group_names([run(config={"n_e": 8}), run(config={"n_e": 16, "t_max": 10}), run(group="other")])
    common = group_names([run()])[0]
    assert names == [f"{common} (n_e = 8, t_max = 5)", f"{common} (n_e = 16, t_max = 10)", "other"]


def test_what_other_groups_are_is_not_told() -> None:
    rates = [run(group="rates", config={"learning_rate": rate}) for rate in (0.01, 0.1)]
    names = group_names([*rates, run(environment="ALE/Pong-v5")])
    assert names[:2] == ["rates (learning_rate = 0.01)", "rates (learning_rate = 0.1)"]
