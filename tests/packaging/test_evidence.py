"""The page *Evidence*: every claim has its row, and what a row says follows from committed files."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from backend.experiments.definitions import ITEMS
from backend.specs.environments import ENVIRONMENTS
from docs import evidence

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "docs/measurements/papers"


def row_of(item: str, words: str) -> evidence.Row:
    [row] = [row for row in evidence.rows() if row.item == item and words in row.claim]
    return row


def column(study: str, name: str, **where: str) -> list[float]:
    with (PAPERS / study / "runs.csv").open(encoding="utf-8", newline="") as file:
        return [
            float(run[name])
            for run in csv.DictReader(file)
            if all(run[key] == value for key, value in where.items())
        ]


def test_every_figure_and_table_has_a_claim_and_an_anchor() -> None:
    assert ITEMS.keys() - {row.item for row in evidence.rows()} == set()
    anchors = re.findall(r'<span id="([\w-]+)">', evidence.page())
    assert ITEMS.keys() - set(anchors) == set()
    assert len(anchors) == len(set(anchors))


def test_means_and_range_of_runs_follow_from_their_scores() -> None:
    row = row_of("ga3c-figure-7", "learns faster")
    scores = {n: column("ga3c-figure-7", "score", arm=f"batch {n}") for n in (1, 5, 20, 40)}
    assert [value.number for value in row.values] == pytest.approx([np.mean(of) for of in scores.values()])
    assert [(value.low, value.high) for value in row.values] == [(min(of), max(of)) for of in scores.values()]
    assert all(min(scores[n]) > np.mean(scores[m]) for n in (20, 40) for m in (1, 5))
    assert (row.verdict, row.is_of_few_seeds) == ("holds", False)


def test_best_runs_follow_from_their_scores_and_decide_the_verdict() -> None:
    row = row_of("a3c-figure-1", "ends above")
    best = [np.mean(sorted(column("a3c-figure-1", "score", arm=value.label.split(",")[0]))[-5:])
            for value in row.values]  # fmt: skip
    assert [value.number for value in row.values] == pytest.approx(best)
    assert row.verdict == ("does not" if best[0] < min(best[1:]) else "in part")


def test_ratio_follows_from_agent_steps_of_as_much_time() -> None:
    row = row_of("ga3c-table-2", "The larger the network")
    names = ("small", "stride 4", "stride 2", "stride 1")
    ratios = [
        column("ga3c-table-2", "agent_steps", arm=f"GA3C, {name}")[0]
        / column("ga3c-table-2", "agent_steps", arm=f"A3C, {name}")[0]
        for name in names
    ]
    assert [value.number for value in row.values][-4:] == pytest.approx(ratios)
    assert (row.verdict == "holds") == (ratios == sorted(ratios))
    assert "**holds**, *one seed*" in evidence.page()


def test_interval_of_a_mean_is_shown_from_eleven_seeds_on() -> None:
    shared = row_of("a3c-optimizers", "most robust").values[0]
    scores = column("a3c-optimizers", "score", arm="Shared RMSProp")
    half = 2.201 * np.std(scores, ddof=1) / np.sqrt(len(scores))
    assert (shared.low, shared.high) == pytest.approx((np.mean(scores) - half, np.mean(scores) + half))
    assert shared.is_interval


def test_few_seeds_stand_beside_the_verdict() -> None:
    rows = evidence.rows()
    lines = [line for line in evidence.page().splitlines() if line.startswith("| ") and "<br>" in line]
    assert len(lines) == len(rows)
    for row, line in zip(rows, lines, strict=True):
        words = {1: ", *one seed*", 2: ", *two seeds*"}.get(row.seeds, "")
        assert f"| **{row.verdict}**{words}" in line
        assert words or "seed*" not in line


def test_score_of_a_shorter_training_than_the_papers_counts_as_not_tried() -> None:
    row = row_of("paac-table-1", "20.6 on Pong")
    assert row.comparisons[0][1] is (row.values[0].number >= 20.1)
    steps = max(column("paac-table-1-hours", "agent_steps", environment="ALE/Pong-v5"))
    assert row.verdict == ("holds" if row.values[0].number >= 20.1 else "not tried")
    assert f"{steps:,.0f} of 115,000,000 agent steps" in row.reason


def test_table_of_the_random_agent_follows_from_its_runs() -> None:
    lines = (ROOT / "docs/measurements/random.md").read_text("utf-8").splitlines()
    shown = {cells[0]: cells[1:] for line in lines if len(cells := line.strip("| ").split(" | ")) == 6}
    with (ROOT / "docs/measurements/random.csv").open(encoding="utf-8", newline="") as file:
        runs = list(csv.DictReader(file))
    for run in runs:
        mean, deviation, published = (float(run[name]) for name in ("mean_return", "deviation", "published"))
        away = abs(mean - published) / (deviation * np.sqrt(2 / int(run["n_episodes"])))
        assert float(run["distance"]) == pytest.approx(away, abs=1e-3)
    for environment in {run["environment"] for run in runs}:
        cells = shown[ENVIRONMENTS[environment].title]
        for rate, at in (("10-hz", 1), ("each-decision", 3)):
            of = [run for run in runs if (run["environment"], run["rate"]) == (environment, rate)]
            means = [float(run["mean_return"]) for run in of]
            listed = ", ".join(f"{mean:.2f}" for mean in means)
            farthest = max(float(run["distance"]) for run in of)
            wanted = [f"{np.mean(means):.2f} ({listed})".replace("-", "−"), f"{farthest:.2f}"]
            assert cells[at : at + 2] == wanted
            assert {float(run["published"]) for run in of} == {float(cells[0].replace("−", "-"))}
            assert [run["seed"] for run in of] == ["0", "1", "2"]


def test_results_state_the_counts_of_verdicts() -> None:
    assert evidence.summary(evidence.rows()) in (ROOT / "RESULTS.md").read_text("utf-8")
