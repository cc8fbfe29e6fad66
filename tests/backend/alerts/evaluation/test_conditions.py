from typing import Any

import pytest

from backend.alerts.evaluation.conditions import RunFacts, Tail, held_s, met
from backend.db import AlertRule

NAN = float("nan")


def _rule(kind: str, **fields: Any) -> AlertRule:
    return AlertRule(kinds=[kind], **fields)


def _run(**facts: Any) -> RunFacts:
    known: dict[str, Any] = {"id": "r", "name": "PAAC", "attempt": 2, "agent_steps": 900, "score": 12.345}
    return RunFacts(**(known | {"is_early": False, "silent_s": 100.0} | facts))


def _tail(*values: float, every_s: float = 60.0) -> Tail:
    n = len(values)
    return Tail([10 * i for i in range(n)], [every_s * i for i in range(n)], values)


ABOVE: dict[str, Any] = {"metric": "loss/value", "comparison": "above", "value": 5.0, "minutes": 2.0}


@pytest.mark.parametrize(
    ("rule", "run", "tail", "title"),
    [
        (_rule("no_points", minutes=2.0), _run(silent_s=120.0), None, "PAAC: no points for 2 min"),
        (_rule("no_points", minutes=2.0), _run(silent_s=119.9), None, None),
        (_rule("no_points", minutes=2.0), _run(silent_s=None), None, None),
        (_rule("score", score=12.0), _run(), None, "PAAC: score 12 reached"),
        (_rule("score", score=12.0), _run(is_early=True), None, None),
        (_rule("score", score=13.0), _run(), None, None),
        (_rule("score", score=-13.0), _run(score=None), None, None),
        (_rule("nan"), _run(not_finite="loss/td"), None, "PAAC: loss/td is not finite"),
        (_rule("nan"), _run(), None, None),
        (_rule("metric", **ABOVE), _run(), _tail(1, 6, 7, 8), "PAAC: loss/value above 5 for 2 min"),
        (_rule("metric", **ABOVE), _run(), _tail(6, 7, 1, 8), None),
        (_rule("metric", **ABOVE), _run(), _tail(6, 7, 8, 1), None),
        (_rule("metric", **ABOVE), _run(), _tail(6, NAN, 8, 9), None),
        (_rule("metric", **ABOVE), _run(), None, None),
        (_rule("metric", **ABOVE | {"minutes": 0.0}), _run(), _tail(1, 6), "PAAC: loss/value above 5"),
        (
            _rule("metric", **ABOVE | {"comparison": "below", "minutes": 1.0}),
            _run(),
            _tail(9, 4, 3),
            "PAAC: loss/value below 5 for 1 min",
        ),
        (_rule("finished"), _run(), None, None),
    ],
)
def test_rule_has_an_alert_where_its_condition_is_met(
    rule: AlertRule, run: RunFacts, tail: Tail | None, title: str | None
) -> None:
    raised = list(met(rule, run, tail))
    assert [alert.title for alert in raised] == ([] if title is None else [title])
    for alert in raised:
        assert (alert.subject_id, alert.attempt, alert.kind) == ("r", 2, rule.kinds[0])
        assert alert.text == ("" if run.score is None else "Score 12.35.")


def test_metric_alert_has_the_step_of_the_latest_point() -> None:
    [alert] = met(_rule("metric", **ABOVE), _run(), _tail(6, 7, 8))
    assert (alert.agent_steps, alert.metric) == (20, "loss/value")


def test_metric_is_held_since_the_first_of_its_latest_points_that_all_are() -> None:
    assert held_s(_tail(6, 1, 6, 7, 8), "above", 5) == 120
    assert held_s(_tail(6), "above", 5) == 0
    assert held_s(_tail(5), "above", 5) is None
