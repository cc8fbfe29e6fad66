import pytest

from backend.drawing.panels import Frame
from backend.experiments.figures.kinds.reached import reached_figure
from tests.backend.drawing.lines import valid
from tests.backend.experiments.figures.finished import figure, finish, started
from tests.support.service import RunningService

pytestmark = pytest.mark.service

FRAME = Frame("t", ["A3C", "PAAC"])


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


def test_reached_environments_are_counted_by_hour() -> None:
    hours = {"A3C": [2.0, 0.5], "PAAC": []}
    figure = valid(reached_figure(hours, n_environments=3, furthest=4.0, x="h", unit="min", frame=FRAME))
    a3c, paac = figure.data
    assert "%{x:.3~g} min: %{y} environments" in a3c.hovertemplate
    assert (list(a3c.x), list(a3c.y)) == ([0.0, 0.5, 2.0, 4.0], [0, 1, 2, 2])
    assert list(paac.y) == [0, 0]
    assert a3c.line.shape == "hv"
