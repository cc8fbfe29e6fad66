"""The script `callboard`: the client's commands and, where the server is installed, the server's.

An installed server names its commands in the entry-point group `callboard.commands`.
"""

import argparse
import sys
from importlib.metadata import entry_points

from callboard.syncing import Refused, discard, refused, sync

GROUP = "callboard.commands"
"""Entry points: functions that run the command of `sys.argv`, and exit."""

COMMANDS = ("sync",)
"""What the client does without a server's installation."""


def main() -> int:
    """Run the command given by the arguments; return its exit status."""
    for server in entry_points(group=GROUP):
        server.load()()
        return 0
    return run_client()


def run_client() -> int:
    """Run a command of the client alone."""
    word = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), None)
    if word is not None and word not in COMMANDS:
        sys.stderr.write(
            f"callboard: {word!r} is no command of the client ({', '.join(COMMANDS)}); the commands of the "
            "server come with the package callboard: pip install callboard\n"
        )
        return 2
    parser = argparse.ArgumentParser(prog="callboard", description="The client of Callboard.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("sync", help="send data that scripts have logged but not sent")
    command.add_argument("--folder", help="folder of the spools; default: this user's")
    command.add_argument("--url", help="address of the server; default: the one that each script logged to")
    command.add_argument("--run", help="only data of the run with this id")
    command.add_argument("--discard", metavar="RUN", help="instead, delete what was refused of this run")
    arguments = parser.parse_args()
    if arguments.discard is not None:
        return ask_and_discard(arguments.folder, arguments.discard)
    return sync_and_report(arguments.folder, arguments.url, arguments.run)


def sync_and_report(folder: str | None, url: str | None, run: str | None) -> int:
    """Send what is left, and print what was done; 1 if something remains or was refused."""
    done = sync(folder, url=url, run=run)
    for problem in done.problems:
        sys.stderr.write(f"{problem}\n")
    for each in done.refused:
        sys.stderr.write(f"{_line(each)}\n")
    if done.refused:
        sys.stderr.write("what was refused is kept; `sync --discard RUN` deletes it\n")
    refused = f", {done.n_dropped:,} of them dropped by the server" if done.n_dropped else ""
    refused += f", {done.n_refused:,} refused" if done.n_refused else ""
    sys.stdout.write(f"{done.n_spools:,} spools sent: {done.n_rows:,} values, episodes and lines{refused}\n")
    return 1 if done.problems or done.refused else 0


def ask_and_discard(folder: str | None, run: str) -> int:
    """Delete what the server has refused of a run, after a question; 1 if nothing is deleted."""
    kept = refused(folder, run=run)
    if not kept:
        sys.stderr.write(f"nothing of run {run} was refused\n")
        return 1
    for each in kept:
        sys.stdout.write(f"{_line(each)}\n")
    sys.stdout.write("Delete it? It cannot be restored. [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        sys.stdout.write("nothing was deleted\n")
        return 1
    sys.stdout.write(f"{discard(run, folder):,} values, episodes, lines and files were deleted\n")
    return 0


def _line(each: Refused) -> str:
    return f"run {each.run}: {each.n_rows:,} rows were refused: {each.reason} (kept in {each.folder})"


if __name__ == "__main__":
    sys.exit(main())
