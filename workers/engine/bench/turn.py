"""One row, measured for a while in this process; prints one JSON line.

    python -m workers.engine.bench.turn ROW ENVIRONMENT --seconds S --cores N --parent PID

The first steps, of `WARM_UP_S`, are not counted. Exit codes: 0 done, `MISSING` a package that the row needs
is not installed here, named on standard error.
"""

import argparse
import importlib
import json
import sys
import time
from collections import defaultdict
from contextlib import closing
from typing import Any

from workers.engine.bench.made import PARTS, Turns
from workers.engine.bench.rows import Row, rows
from workers.engine.lifeline import die_with_parent

WARM_UP_S = 1.0
MISSING = 3


def make(row: Row, environment: str) -> Turns:
    """Begin a row; `close` of what this gives ends every process that it started.

    Raises:
        ModuleNotFoundError: it needs a package that is not here.
    """
    module, function = row.function.split(":")
    found: Turns = getattr(importlib.import_module(f"workers.engine.bench.{module}"), function)(
        environment, **row.arguments
    )
    return found


def measure(turns: Turns, seconds: float, cores: int) -> dict[str, Any]:
    """Agent steps a second, and the share of the cores' time that went to each part where that is known."""
    began = time.perf_counter()
    next(turns)
    while time.perf_counter() - began < WARM_UP_S:
        next(turns)
    agent_steps, core_s = 0, defaultdict[str, float](float)
    began = time.perf_counter()
    while (passed_s := time.perf_counter() - began) < seconds:
        made = next(turns)
        agent_steps += made.agent_steps
        for part, spent_s in made.core_s.items():
            core_s[part] += spent_s
    told: dict[str, Any] = {"agent_steps_per_s": agent_steps / passed_s}
    if core_s:
        shares = {part: core_s[part] / (cores * passed_s) for part in PARTS}
        told["time"] = shares | {"rest": max(0.0, 1 - sum(shares.values()))}
    return told


def main() -> int:
    """Measure the row that the arguments name."""
    parser = argparse.ArgumentParser()
    parser.add_argument("row")
    parser.add_argument("environment")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    args = parser.parse_args()
    die_with_parent(args.parent)
    [row] = [row for row in rows(args.cores) if row.id == args.row]
    try:
        turns = make(row, args.environment)
        with closing(turns):
            told = measure(turns, args.seconds, args.cores)
    except ModuleNotFoundError as error:
        sys.stderr.write(f"{error.name} is not installed\n")
        return MISSING
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
