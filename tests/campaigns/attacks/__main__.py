"""`make attacks`: attacks on an installation of `callboard up`, about ten minutes, with a report.

python -m tests.campaigns.attacks [--attack NAME ...]
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.campaigns.attacks.attacks import ATTACKS
from tests.campaigns.attacks.target import Target


def main() -> int:
    """Run the attacks, one after the other. Return 1 if any of them succeeded."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.attacks", description=__doc__)
    parser.add_argument("--attack", choices=list(ATTACKS), action="append")
    args = parser.parse_args()
    succeeded = False
    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        target = Target(Path(folder) / "home")
        try:
            for name in args.attack or ATTACKS:
                report = target.run(name, ATTACKS[name])
                sys.stdout.write(f"{report}\n")
                sys.stdout.flush()
                succeeded = succeeded or bool(report.problems)
        finally:
            target.stop()
    return int(succeeded)


if __name__ == "__main__":
    sys.exit(main())
