"""`make attacks`: attacks on an installation of `callboard up`, with a report.

python -m tests.campaigns.attacks [--attack NAME ...] [--short] [--users N] [--command TEXT ...]

In full, a quarter of an hour. `--short --users 40` takes six minutes and measures the requests of forty users
meanwhile. A command is one more attack, by a script of one's own: the words {url}, {port}, {pid} (of the web
process), {home}, {run}, {viewer}, {operator} and {external} (tokens) in it are replaced.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic

from tests.campaigns.attacks.attacks import ATTACKS
from tests.campaigns.attacks.files import FILES
from tests.campaigns.attacks.laws import LAWS
from tests.campaigns.attacks.linearity import LINEARITY
from tests.campaigns.attacks.target import MAX_USERS_P95_S, Report, Target
from tests.campaigns.attacks.users import p95_s, summary

ALL = LINEARITY | LAWS | FILES | ATTACKS
COMMAND_TIMEOUT_S = 10.0


def command(text: str, target: Target, report: Report) -> None:
    """Run a script as an attack, for a time."""
    words = {
        "url": target.url,
        "port": target.url.rpartition(":")[2],
        "pid": target.process("web").pid,
        "home": target.home,
        "run": target.run_id,
        **target.tokens,
    }
    try:
        done = subprocess.run(
            [word.format(**words) for word in shlex.split(text)],
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        report.details = (
            f"exit code {done.returncode}; {done.stdout.strip()[-500:]} {done.stderr.strip()[-200:]}"
        )
    except subprocess.TimeoutExpired:
        report.details = f"ended after {COMMAND_TIMEOUT_S:.0f} s"


def main() -> int:
    """Run the attacks, one after the other. Return 1 if any of them succeeded."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.attacks", description=__doc__)
    parser.add_argument("--attack", choices=list(ALL), action="append")
    parser.add_argument("--short", action="store_true", help="long attacks take a quarter of their time")
    parser.add_argument("--users", type=int, default=0, help="users whose requests are measured meanwhile")
    parser.add_argument("--command", action="append", default=[], help="a script that attacks, too")
    args = parser.parse_args()
    attacks: dict[str, Callable[[Target, Report], None]] = {name: ALL[name] for name in args.attack or ALL}
    attacks |= {f"command {Path(text.split()[1]).name}": partial(command, text) for text in args.command}
    succeeded, began = False, monotonic()
    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        target = Target(Path(folder) / "home", short=args.short, n_users=args.users)
        try:
            for name, attack in attacks.items():
                report = target.run(name, attack)
                sys.stdout.write(f"{report}\n")
                sys.stdout.flush()
                succeeded = succeeded or bool(report.problems)
            if target.users is not None:
                samples = target.users.samples()
                sys.stdout.write(
                    f"all {len(attacks)} attacks, {monotonic() - began:.0f} s; {summary(samples)}\n"
                )
                succeeded = succeeded or p95_s(samples) > MAX_USERS_P95_S
        finally:
            target.stop()
    return int(succeeded)


if __name__ == "__main__":
    sys.exit(main())
