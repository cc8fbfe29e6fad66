"""The training doctor's rules on series like those of runs: each applies to one that is broken, and to no run
that is well."""

from typing import Any

import numpy as np
import pytest

from backend.analysis.symptoms.rules import RULES, Curve, Training
from backend.specs.host_load import CPU_GRANTED
from backend.specs.metrics import EXPLAINED_VARIANCE

N = 200
AT = np.linspace(1_000, 200_000, N)
PLATEAU = np.ones(N)
NOISE = np.random.default_rng(0).normal(size=N)
FROM_THE_MIDDLE = np.arange(N) >= N // 2


def curve(y: Any, **changes: float) -> Curve:
    y = np.asarray(y, float)
    return Curve(AT[: len(y)], y, **({"min": np.nanmin(y), "max": np.nanmax(y)} | changes))


GOOD = curve(np.linspace(20, 500, N) + NOISE)
POOR = curve(20 + NOISE, min=8, max=90)


def symptoms(
    returns: Curve | None, y: dict[str, Any], wall_time_s: float = 600.0, **config: float
) -> dict[str, int]:
    """By rule, since when it applies to a run with these returns, metrics and settings."""
    curves = {name: curve(values) for name, values in y.items()}
    training = Training(curves, returns, config, wall_time_s)
    found_by = {rule.id: rule.find(training) for rule in RULES}
    return {rule: finding.since for rule, finding in found_by.items() if finding is not None}


def test_entropy_near_zero_is_a_collapse_only_while_returns_are_poor() -> None:
    collapsed = np.where(FROM_THE_MIDDLE, 0.001, 0.6)
    assert symptoms(POOR, {"loss/entropy": collapsed}) == {"entropy_collapse": AT[N // 2]}
    assert symptoms(POOR, {"losses/entropy": collapsed}) == {"entropy_collapse": AT[N // 2]}  # CleanRL
    assert symptoms(GOOD, {"loss/entropy": collapsed}) == {}  # it has learned
    assert symptoms(None, {"loss/entropy": collapsed}) == {}  # its returns are not known
    assert symptoms(POOR, {"loss/entropy": 0.6 + NOISE / 20}) == {}
    assert symptoms(POOR, {"loss/entropy": np.where(FROM_THE_MIDDLE, -1.0, 1.4)}) == {}  # continuous actions
    recovered = np.where((AT > 50_000) & (AT < 100_000), 0.001, 0.6)
    assert symptoms(POOR, {"loss/entropy": recovered}) == {}


def test_gradients_explode_if_lost_or_a_hundred_times_as_large_with_poor_returns() -> None:
    lost = np.where(AT > 150_000, np.nan, 1.0)
    assert symptoms(GOOD, {"loss/value": lost}) == {"exploding_gradient": int(AT[lost != 1][0])}
    exploding = np.where(FROM_THE_MIDDLE, 900.0, 3.0)
    assert symptoms(POOR, {"optim/grad_norm": exploding}) == {"exploding_gradient": AT[N // 2]}
    assert symptoms(GOOD, {"optim/grad_norm": exploding}) == {}
    outliers = np.where(np.arange(N) % 20 == 0, 5_000.0, 3.0)
    assert symptoms(POOR, {"optim/grad_norm": outliers}) == {}


def test_values_explode_beyond_what_rewards_allow() -> None:
    values = {"value/mean": np.where(FROM_THE_MIDDLE, 150.0, 20.0)}
    clipped = {"reward_clip": 1.0, "gamma": 0.99}
    assert symptoms(GOOD, values, **clipped) == {"exploding_gradient": AT[N // 2]}
    assert symptoms(GOOD, values, **clipped | {"gamma": 0.999}) == {}
    assert symptoms(GOOD, values, reward_clip=0, gamma=0.99) == {}  # at most 500 were returned
    assert symptoms(GOOD, {"value/max_q": PLATEAU * 6_000}) == {"exploding_gradient": AT[0]}


@pytest.mark.parametrize(
    "metric", [EXPLAINED_VARIANCE, "train/explained_variance", "losses/explained_variance"]
)
def test_explained_variance_below_zero_counts_only_while_returns_are_poor(metric: str) -> None:
    negative = {metric: np.where(FROM_THE_MIDDLE, -0.4, 0.5)}
    assert symptoms(POOR, negative) == {"explained_variance": AT[N // 2]}
    assert symptoms(GOOD, negative) == {}
    assert symptoms(POOR, {metric: 0.5 + NOISE / 2}) == {}


@pytest.mark.parametrize("metric", ["ga3c/policy_lag", "gorila/gradient_staleness"])
def test_policy_lag_grows_to_three_times_that_of_the_first_quarter(metric: str) -> None:
    assert symptoms(GOOD, {metric: np.where(FROM_THE_MIDDLE, 40.0, 6.0)}) == {"policy_lag": AT[N // 2]}
    assert symptoms(GOOD, {metric: np.linspace(6, 12, N)}) == {}
    assert symptoms(GOOD, {metric: np.where(FROM_THE_MIDDLE, 4.0, 0.5)}) == {}  # old, but hardly


def test_engine_is_slow_at_half_the_rate_of_its_first_quarter_or_without_cores() -> None:
    rate = {"speed/agent_steps_per_s": np.where(FROM_THE_MIDDLE, 700.0, 2_000.0)}
    assert symptoms(GOOD, rate) == {"speed": AT[N // 2]}
    assert symptoms(GOOD, {"speed/agent_steps_per_s": 2_000 + 300 * NOISE}) == {}
    filled = np.where(AT < 50_000, 9_000.0, 2_000.0)  # a replay memory, before the first update
    learned = curve(PLATEAU[AT >= 50_000])
    training = Training(
        {"speed/agent_steps_per_s": curve(filled), "loss/td": Curve(AT[AT >= 50_000], learned.y, 1, 1)},
        GOOD, {}, wall_time_s=600.0,
    )  # fmt: skip
    assert [rule.id for rule in RULES if rule.find(training)] == []
    assert symptoms(GOOD, {CPU_GRANTED: np.where(FROM_THE_MIDDLE, 10.0, 80.0)}) == {"speed": AT[N // 2]}
    assert symptoms(GOOD, {CPU_GRANTED: PLATEAU * 90}) == {}


def test_few_points_young_runs_and_those_without_such_metrics_say_nothing() -> None:
    assert symptoms(None, {}) == {}
    assert symptoms(POOR, {"train/accuracy": PLATEAU}) == {}
    first = np.full(10, 0.0)
    assert symptoms(POOR, {"loss/entropy": first, "optim/grad_norm": first, "value/mean": first}) == {}
    assert symptoms(POOR, {"loss/entropy": PLATEAU / 1_000}, wall_time_s=20.0) == {}
