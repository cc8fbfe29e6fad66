"""How often simulated races go wrong, and what they save, as tables for `docs/statistics.md`.

python -m tests.campaigns.racing_errors
"""

from collections.abc import Iterator

import numpy as np

from backend.statistics.estimates import Scores
from tests.campaigns.racing_errors.simulation import DISTRIBUTIONS, MAX_SEEDS, N_RACES, Draw, race


def main() -> None:
    """Print both tables."""
    write("| scores | configurations | any declared worse, all equal | best eliminated |")
    write("|---|--:|--:|--:|")
    rng = np.random.default_rng(0)
    for name, draw in DISTRIBUTIONS.items():
        for n in (2, 3, 5, 8, 12, 20):
            equal = sum(bool(race(draw(rng, (n, MAX_SEEDS)))[0]) for _ in range(N_RACES))
            lost = sum(0 in race(scores)[0] for scores in _with_a_better_one(rng, draw, n))
            write(f"| {name} | {n} | {100 * equal / N_RACES:.1f} % | {100 * lost / N_RACES:.1f} % |")
    write("\n| configurations | distance | seeds run | without a race | eliminated | best eliminated |")
    write("|--:|--:|--:|--:|--:|--:|")
    for n in (3, 8, 20):
        for distance in (0.5, 1.0, 2.0, 4.0):
            scores = [
                rng.normal(size=(n, MAX_SEEDS)) - distance * np.arange(n)[:, None] for _ in range(N_RACES)
            ]
            raced = [race(score) for score in scores]
            seeds, lost = (
                np.mean([outcome[1] for outcome in raced]),
                sum(0 in outcome[0] for outcome in raced),
            )
            gone = np.mean([len(outcome[0]) for outcome in raced])
            write(
                f"| {n} | {distance:g} s.d. | {seeds:.1f} | {n * MAX_SEEDS} | {gone:.1f} | "
                f"{100 * lost / N_RACES:.1f} % |"
            )


def write(line: str) -> None:
    """Print a line and flush it."""
    print(line, flush=True)  # noqa: T201


def _with_a_better_one(rng: np.random.Generator, draw: Draw, n: int) -> Iterator[Scores]:
    for _ in range(N_RACES):
        scores = draw(rng, (n, MAX_SEEDS))
        scores[0] += 1.0
        yield scores


if __name__ == "__main__":
    main()
