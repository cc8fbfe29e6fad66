"""Exit with 1 if the runs with one tag score significantly less than those with another."""

import argparse
import sys

import callboard

parser = argparse.ArgumentParser(description="Compare the scores of runs with those of a baseline.")
parser.add_argument("--new", required=True, help="tag of the runs to check")
parser.add_argument("--baseline", required=True, help="tag of the runs to compare with")
options = parser.parse_args()


def finished(client: callboard.Client, tag: str) -> callboard.Runs:
    """The finished runs with a tag."""
    runs = client.runs(f'tag:"{tag}" state:finished')
    if not runs:
        sys.exit(f"there is no finished run with the tag {tag}")
    return runs


with callboard.connect() as client:
    new, baseline = finished(client, options.new), finished(client, options.baseline)
    comparison = client.compare([*new, *baseline])
    print(comparison)
new_runs, baseline_runs = {run.id for run in new}, {run.id for run in baseline}
verdicts = [
    verdict
    for verdict in comparison.verdicts
    if new_runs & {*verdict.a.runs, *verdict.b.runs} and baseline_runs & {*verdict.a.runs, *verdict.b.runs}
]
if not verdicts or not all(verdict.is_decided for verdict in verdicts):
    sys.exit("too few seeds for a verdict: train at least five of each, which differ in the code's version")
if any(verdict.better is not None and baseline_runs & {*verdict.better.runs} for verdict in verdicts):
    sys.exit("the score has regressed")
