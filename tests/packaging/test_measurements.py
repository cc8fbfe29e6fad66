"""Numbers of docs/measurements/papers.md that follow from its committed runs."""

import csv
from pathlib import Path

import numpy as np

PAPERS = Path(__file__).parents[2] / "docs/measurements/papers"
PAGE = PAPERS.with_suffix(".md").read_text("utf-8")


def scores(study: str) -> dict[str, list[tuple[float, float]]]:
    """Score and learning rate of each run, by arm."""
    by_arm: dict[str, list[tuple[float, float]]] = {}
    with (PAPERS / study / "runs.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            by_arm.setdefault(row["arm"], []).append(
                (float(row["score"]), float(row["config.learning_rate"]))
            )
    return by_arm


def test_scores_of_the_best_rates_and_of_the_optimizers_are_rounded_once() -> None:
    best = {
        arm: np.mean(sorted(score for score, _ in runs)[-5:]) for arm, runs in scores("a3c-figure-1").items()
    }
    assert f"1-step Q {best['1-step Q']:.0f}, n-step Q" in PAGE
    runs = scores("a3c-optimizers")
    names = "RMSProp", "Shared RMSProp", "Momentum SGD"
    highest = [f"{max(score for score, _ in runs[name]):.0f}" for name in names]
    means = [f"{np.mean([score for score, _ in runs[name]]):.0f}" for name in names]
    words = "RMSProp {}, shared RMSProp {}, momentum SGD {}; means of 12: {}, {}, {}"
    assert words.format(*highest, *means) in PAGE


def test_range_of_good_rates_begins_with_a_run_of_the_upper_half() -> None:
    [runs] = scores("a3c-figure-2").values()
    values = [score for score, _ in runs]
    middle = (max(values) + min(values)) / 2
    good = [rate for score, rate in runs if score >= middle]
    assert f"{len(good)} of {len(runs)} learning rates" in PAGE
    assert f"from {min(good):.4f} to {max(good):.4f}" in PAGE
