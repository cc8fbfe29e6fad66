"""`python -m callboard sync`: send data that scripts have logged but not sent."""

import argparse
import sys

from callboard.syncing import sync


def main() -> int:
    """Run the command given by the arguments; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m callboard", description="The client of Callboard.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("sync", help="send data that scripts have logged but not sent")
    command.add_argument("--folder", help="folder of the spools; default: this user's")
    command.add_argument("--url", help="address of the server; default: the one that each script logged to")
    command.add_argument("--run", help="only data of the run with this id")
    arguments = parser.parse_args()
    return sync_and_report(arguments.folder, arguments.url, arguments.run)


def sync_and_report(folder: str | None, url: str | None, run: str | None) -> int:
    """Send what is left, and print what was done; 1 if something remains or was refused."""
    done = sync(folder, url=url, run=run)
    for problem in done.problems:
        sys.stderr.write(f"{problem}\n")
    refused = f", {done.n_refused:,} refused" if done.n_refused else ""
    sys.stdout.write(f"{done.n_spools:,} spools sent: {done.n_rows:,} values, episodes and lines{refused}\n")
    return 1 if done.problems else 0


if __name__ == "__main__":
    sys.exit(main())
