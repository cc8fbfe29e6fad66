"""`make chaos`: a hundred faults on each database, with a report.

python -m tests.campaigns.chaos [--database sqlite|postgresql] [--faults 100] [--seed N] [--pause 3]
"""

import argparse
import secrets
import sys
from pathlib import Path

from tests.campaigns.chaos import campaign, more_faults
from tests.campaigns.chaos.databases import DATABASES


def main() -> int:
    """Run the campaigns. Return 1 if any invariant was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.chaos", description=__doc__)
    parser.add_argument("--database", choices=list(DATABASES), action="append")
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--fake-engine", action="store_true", help="train nothing, to save processor time")
    parser.add_argument(
        "--pause", type=float, default=campaign.MEAN_PAUSE_S, help="mean seconds between faults"
    )
    parser.add_argument("--report", type=Path, help="file for the report of a campaign with violations")
    args = parser.parse_args()
    violated = False
    for database in args.database or list(DATABASES):
        report = campaign.run(
            database,
            args.seed,
            args.faults,
            fake_engine=args.fake_engine,
            mean_pause_s=args.pause,
            kinds=more_faults.FAULTS,
            on_event=print,
        )
        sys.stdout.write(f"{report}\n")
        for violation in report.violations:
            sys.stdout.write(f"VIOLATION {violation}\n")
        if report.violations and args.report:
            with args.report.open("a") as file:
                file.write("\n".join([str(report), *report.violations, *report.log, ""]))
        violated = violated or bool(report.violations)
    return int(violated)


if __name__ == "__main__":
    sys.exit(main())
