"""Exit with 1 if the runs with one tag score less than those with another."""

import argparse
import statistics
import sys

import callboard

parser = argparse.ArgumentParser(description="Compare the mean score of runs with that of a baseline.")
parser.add_argument("--new", required=True, help="tag of the runs to check")
parser.add_argument("--baseline", required=True, help="tag of the runs to compare with")
parser.add_argument("--tolerance", type=float, default=0.1, help="fraction of the baseline's score")
options = parser.parse_args()


def mean_score(client: callboard.Client, tag: str) -> float:
    """Mean score of the finished runs with a tag."""
    scores = [run.score for run in client.runs(f'tag:"{tag}" state:finished') if run.score is not None]
    if not scores:
        sys.exit(f"no finished run with the tag {tag} has a score")
    print(f"{tag}: mean score {statistics.mean(scores):.1f} of {len(scores)} runs")
    return statistics.mean(scores)


with callboard.connect() as client:
    new, baseline = mean_score(client, options.new), mean_score(client, options.baseline)
if new < baseline - options.tolerance * abs(baseline):
    sys.exit(f"the score has regressed by {baseline - new:.1f}")
