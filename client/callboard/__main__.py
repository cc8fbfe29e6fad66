"""The script `callboard`: the client's commands and, where the server is installed, the server's.

An installed server names its commands in the entry-point group `callboard.commands`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

from callboard.commands import COMMANDS, run

GROUP = "callboard.commands"
"""Entry points: functions that run the command of `sys.argv`, and exit."""


def main() -> int:
    """Run the command given by the arguments; return its exit status."""
    for server in _servers():
        server.load()()
        return 0
    return run_client()


def _servers() -> Iterable[EntryPoint]:
    if sys.version_info >= (3, 10):
        return entry_points(group=GROUP)
    return entry_points().get(GROUP, ())


def run_client() -> int:
    """Run a command of the client alone."""
    word = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), None)
    if word is not None and word not in COMMANDS:
        sys.stderr.write(
            f"callboard: {word!r} is no command of the client ({', '.join(COMMANDS)}); the commands of the "
            "server come with the package callboard, the other wheel of the server's release\n"
        )
        return 2
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
