"""Coverage of intervals and rate of false verdicts for 2 to 20 seeds, as tables for `docs/statistics.md`.

    python -m tests.campaigns.interval_coverage [--samples 4000] [--resamples 1000] [--seed 0]

Draws groups of scores from known distributions. Prints how often each method's interval covers the true
value, and how often groups with equal settings are found to differ.
"""

import argparse
from collections.abc import Iterable, Sequence

import numpy as np

from tests.campaigns.interval_coverage.simulation import (
    BEST,
    METHODS,
    POPULATIONS,
    coverages,
    difference_coverage,
    false_verdicts,
    former_false_verdicts,
    t_coverages,
)

SEEDS = range(2, 21)
SPREADS = (1.0, 3.0)


def main() -> None:
    """Simulate, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, default=4000, help="groups or pairs of groups per number")
    parser.add_argument("--resamples", type=int, default=1000, help="of each bootstrap")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)

    covered = {
        n: {
            name: coverages(population, n, args.samples, args.resamples, rng)
            for name, population in POPULATIONS.items()
        }
        for n in SEEDS
    }
    table("Lowest coverage over the four kinds of scores, %", METHODS.values())
    for n, by_kind in covered.items():
        row(n, [min(by_method[name] for by_method in by_kind.values()) for name in METHODS])
    table(f"Coverage of {METHODS[BEST]}, by kind of scores, %", POPULATIONS)
    for n, by_kind in covered.items():
        row(n, [by_method[BEST] for by_method in by_kind.values()])

    table("Coverage of the difference, lowest over the kinds, %", [f"spread of A × {s:g}" for s in SPREADS])
    for n in SEEDS:
        row(
            n,
            [
                min(
                    difference_coverage(population, n, spread, args.samples, rng)
                    for population in POPULATIONS.values()
                )
                for spread in SPREADS
            ],
        )

    columns = ["two groups", "five groups, ten comparisons", "former: bootstrap of P(A > B)"]
    table("False verdicts under equal settings, %", columns)
    few = args.samples // 4
    for n in SEEDS:
        # Both criteria depend on ranks alone, so all kinds of scores are one sample.
        kinds = POPULATIONS.values()
        row(
            n,
            [
                float(np.mean([false_verdicts(kind, n, 2, args.samples, rng) for kind in kinds])),
                float(np.mean([false_verdicts(kind, n, 5, few, rng) for kind in kinds])),
                float(np.mean([former_false_verdicts(kind, n, few, args.resamples, rng) for kind in kinds])),
            ],
        )

    table("Lowest coverage by Student's t over the four kinds of scores, %", ["mean", "IQM"])
    rng = np.random.default_rng(args.seed)
    for n in SEEDS:
        by_t = [t_coverages(population, n, 5 * args.samples, rng) for population in POPULATIONS.values()]
        row(n, [min(shares["mean"] for shares in by_t), min(shares["iqm"] for shares in by_t)])


def table(title: str, columns: Iterable[str]) -> None:
    """Print the head of a table."""
    names = list(columns)
    print(f"\n{title}\n\n| seeds | {' | '.join(names)} |\n|{'--:|' * (len(names) + 1)}", flush=True)  # noqa: T201


def row(n: int, shares: Sequence[float]) -> None:
    """Print the shares for n seeds, in percent."""
    cells = ["–" if np.isnan(share) else f"{100 * share:.1f}" for share in shares]
    print(f"| {n} | {' | '.join(cells)} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
