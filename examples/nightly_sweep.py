"""Every night: train each learning rate with some seeds, and print which was best.

In the crontab of a machine that reaches the server:

    CALLBOARD_URL=http://lab-server:8642
    CALLBOARD_TOKEN=...
    0 1 * * * python /home/me/nightly_sweep.py >> /home/me/nightly.log 2>&1
"""

import argparse
import statistics
import sys
from datetime import date

import callboard

parser = argparse.ArgumentParser(description="Compare learning rates of PAAC overnight.")
parser.add_argument("--environment", default="CartPole-v1")
parser.add_argument("--learning-rates", type=float, nargs="+", default=[0.001, 0.003, 0.01])
parser.add_argument("--seeds", type=int, default=5)
parser.add_argument("--agent-steps", type=int, default=200_000)
parser.add_argument("--hours", type=float, default=7.0, help="then stop what still trains")
options = parser.parse_args()

night = f"nightly {date.today()}"
with callboard.connect() as client:
    by_rate = {
        rate: client.start(
            "paac",
            options.environment,
            seeds=range(options.seeds),
            config={"learning_rate": rate},
            stop={"agent_steps": options.agent_steps},
            group=f"{night} lr={rate:g}",
            tags=[night],
        )
        for rate in options.learning_rates
    }
    everything = client.runs(f'tag:"{night}"')
    try:
        everything.wait(timeout_s=3600 * options.hours)
    except TimeoutError:
        everything.stop()
        everything.wait()

    print(f"{night}, {options.environment}: score by learning rate, over {options.seeds} seeds")
    for rate, runs in by_rate.items():
        scores = [run.score for run in runs.refresh() if run.score is not None]
        shown = f"median {statistics.median(scores):.1f}" if scores else "no episode was finished"
        print(f"{rate:10g}  {shown}  {client.url}/runs/{runs[0].id}")
    failed = [run for run in everything.refresh() if run.state == "failed"]
    for run in failed:
        print(f"failed: {run.url}: {run.data['state_reason']}")
sys.exit(1 if failed else 0)
