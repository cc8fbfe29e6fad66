"""Reducers of studies, against values computed by hand."""

from dataclasses import replace

import numpy as np
import pytest

from backend.statistics.across import across_environments
from backend.statistics.members import (
    EvaluationScore,
    MemberRun,
    Points,
    history,
    last_score,
    time_to_peak,
    time_to_score,
    training_history,
)
from backend.statistics.reducers import (
    BestKept,
    BestOf,
    Last,
    MeanOfBest,
    MeanOfTopByMetric,
    MissingReferenceError,
    Normalised,
    Peak,
    RatioTo,
    Reference,
    TimeTo,
    TimeToPeak,
    UnknownArmError,
    normalise,
)

PONG = "ALE/Pong-v5"


def run_of(
    draw: int, *scores: float, arm: str = "a", environment: str = PONG, kept: float | None = None
) -> MemberRun:
    """A run whose evaluation after each 100 agent steps (10 s) had these scores."""
    evaluations = [EvaluationScore(100 * i, 10.0 * i, score) for i, score in enumerate(scores, 1)]
    if kept is not None:
        evaluations.append(EvaluationScore(100 * len(scores) + 1, 10.0 * len(scores), kept, best_kept=True))
    return MemberRun(arm, environment, draw, evaluations=tuple(evaluations))


def trained(draw: int, *returns: float, arm: str = "a") -> MemberRun:
    """A run whose training episodes, one every 10 agent steps (1 s), had these returns."""
    n = np.arange(1, len(returns) + 1, dtype=float)
    return MemberRun(arm, PONG, draw, Points(10 * n, n, np.array(returns, float)))


def test_last_is_the_mean_of_the_last_evaluations_without_the_best_kept_ones() -> None:
    (cell,) = Last().reduce([run_of(0, 9, 1, kept=50), run_of(1, 2), run_of(2, 0, 6)]).cells
    assert (cell.value, cell.low, cell.n, cell.members) == (3.0, None, 3, (2, 1, 0))
    assert cell.caption == "mean of the last evaluations of 3 runs; 3 of 3 runs are in"


def test_last_of_training_is_the_mean_of_100_returns() -> None:
    returns = [1000.0] * 5 + [1.0] * 50 + [3.0] * 50
    (cell,) = Last("training").reduce([trained(0, *returns), run_of(1, 7)]).cells
    assert (cell.value, cell.n, cell.planned) == (2.0, 1, 2)
    assert cell.caption == "mean of the last training scores of 2 runs; 1 of 2 runs is in"


def test_last_median_of_five_runs_has_the_range_as_its_interval() -> None:
    (cell,) = (
        Last(centre="median").reduce([run_of(i, score) for i, score in enumerate([5, 1, 4, 2, 9])]).cells
    )
    assert (cell.value, cell.low, cell.high) == (4.0, 1.0, 9.0)


def test_last_mean_of_eleven_runs_has_students_interval() -> None:
    """Scores 0 to 10: mean 5, s^2 = 110 / 10 = 11, SE = sqrt(11 / 11) = 1, t(10) = 2.228."""
    (cell,) = Last().reduce([run_of(i, i) for i in range(11)]).cells
    assert (cell.value, cell.low, cell.high) == pytest.approx((5.0, 2.772, 7.228))


def test_best_kept_uses_only_the_second_evaluations_of_the_best_parameters() -> None:
    (cell,) = BestKept().reduce([run_of(0, 1, kept=10), run_of(1, 100), run_of(2, 1, kept=20)]).cells
    assert (cell.value, cell.n, cell.planned, cell.members) == (15.0, 2, 3, (2, 0))
    assert cell.caption == "mean of the best parameters of 3 runs, evaluated again; 2 of 3 runs are in"


def test_best_of_three_ignores_further_draws() -> None:
    runs = [run_of(0, 3), run_of(1, 7), run_of(2, 5), run_of(3, 99)]
    (cell,) = BestOf(3).reduce(runs).cells
    assert (cell.value, cell.members, cell.n, cell.planned) == (7.0, (1,), 3, 3)
    assert cell.caption == "best of 3 runs; 3 of 3 runs are in"


def test_mean_of_best_runs_names_how_many_of_how_many() -> None:
    runs = [run_of(draw, score) for draw, score in enumerate([1, 8, 3, 6, 4, 2])]
    reduction = MeanOfBest(2).reduce(runs, {("a", PONG): 50, ("b", PONG): 50})
    first, second = reduction.cells
    assert (first.value, first.members, first.n, first.planned) == (7.0, (1, 3), 6, 50)
    assert first.caption == "mean of the best 2 of 50 runs; 6 of 50 runs are in"
    assert (second.arm, second.value, second.n, second.members) == ("b", None, 0, ())
    assert reduction.caption == "mean of the best 2 of 50 runs; 6 of 100 runs are in"
    assert MeanOfBest(9).reduce(runs).caption == "mean of 6 runs; 6 of 6 runs are in"


def test_mean_of_best_settings_takes_the_mean_over_seeds_first() -> None:
    """Rate 0.1: 0 and 10, mean 5; 0.2: 6 and 7, mean 6.5; 0.3: 4. The best run has the second best rate."""
    scores = {0: (0.1, 0), 1: (0.1, 10), 2: (0.2, 6), 3: (0.2, 7), 4: (0.3, 4)}
    runs = [replace(run_of(draw, score), setting=rate) for draw, (rate, score) in scores.items()]
    (cell,) = MeanOfBest(2, of="settings").reduce([*runs, run_of(5, 99)]).cells
    assert (cell.value, cell.n, cell.planned, cell.members) == (5.75, 5, 6, (3, 2, 1, 0))
    assert cell.caption == "mean of the best 2 of 3 learning rates; 5 of 6 runs are in"
    named = MeanOfBest(2, of="settings", names=("value of γ", "values of γ"))
    assert named.reduce(runs).caption == "mean of the best 2 of 3 values of γ; 5 of 5 runs are in"
    assert named.reduce(runs[:2]).caption == "mean of 1 value of γ; 2 of 2 runs are in"


def test_time_to_is_the_median_of_the_first_evaluations_that_reach_the_reference() -> None:
    runs = [run_of(0, 1, 5, 2), run_of(1, 5), run_of(2, 1, 1, 1)]
    (cell,) = TimeTo({PONG: 5.0}, reference_name="DQN's score").reduce(runs).cells
    assert (cell.value, cell.n) == (20.0, 3)
    assert cell.caption == "training time to DQN's score, median of 3 runs; 3 of 3 runs are in"
    (steps,) = TimeTo({PONG: 5.0}, "agent_steps").reduce(runs[:2]).cells
    assert steps.value == 150.0
    assert TimeTo({PONG: 6.0}).reduce(runs).cells[0].value == np.inf


def test_time_to_trusts_neither_few_evaluation_episodes_nor_a_short_window() -> None:
    evaluations = EvaluationScore(100, 10.0, 9.0, 5), EvaluationScore(200, 20.0, 9.0)
    few = MemberRun("a", PONG, 0, evaluations=evaluations)
    assert TimeTo({PONG: 8.0}).reduce([few]).cells[0].value == 20.0
    # A full window is there from the 100th episode on.
    assert TimeTo({PONG: 8.0}, source="training").reduce([trained(0, *[9.0] * 120)]).cells[0].value == 100.0


def test_time_to_raises_for_an_environment_without_reference() -> None:
    with pytest.raises(MissingReferenceError) as error:
        TimeTo({}).reduce([run_of(0, 1)])
    assert error.value.environments == (PONG,)


def test_time_to_peak_is_that_of_the_first_maximum() -> None:
    (best,) = Peak().reduce([run_of(0, 1, 7, 7, 3), run_of(1, 9, 1, 1)]).cells
    assert best.value == 8.0
    (cell,) = TimeToPeak().reduce([run_of(0, 1, 7, 7, 3), run_of(1, 9, 1, 1)]).cells
    assert (cell.value, cell.n) == (15.0, 2)


def test_top_by_metric() -> None:
    runs = [
        replace(run_of(draw, 1), metrics={"speed/updates_per_s": tps})
        for draw, tps in enumerate([10.0, 40.0, 20.0, float("nan")])
    ]
    reduction = MeanOfTopByMetric(2, "speed/updates_per_s", "TPS").reduce(runs, {("a", PONG): 25})
    (cell,) = reduction.cells
    assert (cell.value, cell.members, cell.n) == (30.0, (1, 2), 3)
    assert cell.caption == "top 2 of 25 runs by TPS; 3 of 25 runs are in"
    assert reduction.unit == "speed/updates_per_s"


def test_ratio_of_times_is_the_speed_up_over_the_arm() -> None:
    runs = [run_of(0, 0, 0, 0, 5, arm="1"), run_of(0, 0, 5, arm="2"), run_of(0, 0, arm="4")]
    speed_up = RatioTo("1", TimeTo({PONG: 5.0}), inverse=True).reduce(runs)
    assert [speed_up.value(arm, PONG) for arm in ("1", "2", "4")] == [1.0, 2.0, None]
    assert speed_up.unit == "ratio"
    assert speed_up.cells[0].caption.startswith("speed-up over 1: training time to the reference score")
    assert RatioTo("1", TimeTo({PONG: 5.0})).reduce(runs).value("2", PONG) == 0.5
    with pytest.raises(UnknownArmError):
        RatioTo("8", Last()).reduce(runs)
    assert RatioTo("1", TimeTo({PONG: 5.0})).reduce(runs, {("2", PONG): 1}).value("2", PONG) == 0.5


@pytest.mark.parametrize("inverse", [False, True])
def test_no_ratio_to_an_arm_that_never_reached_the_reference(inverse: bool) -> None:
    runs = [run_of(0, 0, 0, arm="1"), run_of(0, 0, 5, arm="2")]
    times = TimeTo({PONG: 5.0})
    assert times.reduce(runs).value("1", PONG) == np.inf
    ratios = RatioTo("1", times, inverse=inverse).reduce(runs)
    assert [ratios.value(arm, PONG) for arm in ("1", "2")] == [None, None]


def test_normalised_is_linear_between_random_and_target() -> None:
    """Pong: random −20.7, human 9.3; 1.8 is 22.5 of 30 above random play."""
    runs = [run_of(i, 1.8 + i - 2) for i in range(5)]
    reducer = Normalised(Last(centre="median"), {PONG: Reference(-20.7, 9.3)})
    (cell,) = reducer.reduce(runs).cells
    assert (cell.value, cell.low, cell.high) == pytest.approx((75.0, 100 * 20.5 / 30, 100 * 24.5 / 30))
    assert cell.caption.startswith("human-normalised: median of the last evaluations of 5 runs")
    below = Normalised(Last(), {PONG: Reference(10.0, 9.0)}, "DQN").reduce(runs)
    assert below.value("a", PONG) is None
    assert normalise(9.5, Reference(10.0, 9.0)) is None
    assert reducer.missing_references([PONG, "ALE/Boxing-v5"]) == ("ALE/Boxing-v5",)


def test_across_environments_counts_the_environments_that_every_arm_has() -> None:
    games = ["A", "B", "C", "D", "E"]
    runs = [run_of(0, score, environment=game) for game, score in zip(games, [1, 2, 3, 10, 100], strict=True)]
    runs += [run_of(0, 2 * i, arm="b", environment=game) for i, game in enumerate(games[:4])]
    a, b = across_environments(Last().reduce(runs, {(arm, game): 1 for arm in "ab" for game in games}))
    assert a.environments == b.environments == ("A", "B", "C", "D")
    assert (a.mean, a.median, a.iqm) == (4.0, 2.5, 2.5)
    assert (b.mean, b.median, b.iqm) == (3.0, 3.0, 3.0)
    assert a.caption.startswith("over the same 4 of 5 environments; mean of the last evaluations of 1 run")


def test_history_leaves_out_values_that_are_not_finite() -> None:
    run = trained(0, 1.0, float("inf"), 3.0)
    assert history(run, "training").scores.tolist() == [1.0, 2.0]
    assert Last().reduce([run_of(0, float("nan"))]).cells[0].value is None


@pytest.mark.parametrize("n", [0, 1, 99, 100, 101, 400])
def test_highs_of_a_training_have_its_last_score_its_peak_and_the_time_to_any_score(n: int) -> None:
    returns = np.random.default_rng(n).normal(np.linspace(0, 5, n), 20.0).round()
    whole = trained(0, *returns)
    highs = training_history(whole.points).highs()
    known = replace(whole, points=Points(), training=highs)
    assert last_score(known, "training") == last_score(whole, "training")
    for axis in ("agent_steps", "wall_time_s"):
        assert time_to_peak(known, "training", axis) == time_to_peak(whole, "training", axis)
        for score in (-100.0, 0.0, 1.0, 2.0, 3.0, 100.0):
            at = time_to_score(known, score, "training", axis)
            assert at == time_to_score(whole, score, "training", axis)
    assert len(highs.scores) < max(2, n / 2)
