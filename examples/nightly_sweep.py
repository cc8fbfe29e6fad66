"""Every night: train each learning rate with some seeds, and print which was best.

In the crontab of a machine that reaches the server:

    CALLBOARD_URL=http://lab-server:8642
    CALLBOARD_TOKEN=...
    0 1 * * * python /home/me/nightly_sweep.py >> /home/me/nightly.log 2>&1
"""

import argparse
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

with callboard.connect() as client:
    sweep = client.sweep(
        "paac",
        options.environment,
        {"learning_rate": options.learning_rates},
        name=f"nightly {date.today()}",
        stop={"agent_steps": options.agent_steps},
        max_seeds=options.seeds,
    )
    try:
        sweep.wait(timeout_s=3600 * options.hours)
    except TimeoutError:
        sweep.stop().runs().wait()

    print(f"{sweep.name}, {options.environment}: score by learning rate, over the seeds; {sweep.url}")
    for configuration in sweep.refresh().configurations:
        rate, median = configuration["settings"]["config.learning_rate"], configuration["median"]
        shown = "no episode was finished" if median is None else f"median {median['value']:.1f}"
        print(f"{rate:10g}  {shown} over {configuration['n']} seeds")
    failed = [run for run in sweep.runs() if run.state == "failed"]
    for run in failed:
        print(f"failed: {run.url}: {run.data['state_reason']}")
sys.exit(1 if failed else 0)
