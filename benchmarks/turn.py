"""Measures one row in this process; prints one JSON line.

    python -m benchmarks.turn ROW ENVIRONMENT --seconds S --cores N --parent PID

The first `WARM_UP_S` are not counted. Exit codes: 0 done; `MISSING` if a package that the row needs is not
installed, which standard error names.
"""

import argparse
import importlib
import json
import sys
import time
from collections import defaultdict
from contextlib import closing
from typing import Any

from benchmarks.rows import PARTS, Row, RowGenerator, rows
from workers.engine.processes.child import die_with_parent

WARM_UP_S = 1.0
MISSING = 3


def start(row: Row, environment: str) -> RowGenerator:
    """Start a row; `close` on the result stops every process that it started.

    Raises:
        ModuleNotFoundError: it needs a package that is not installed.
    """
    module, function = row.function.split(":")
    row_generator: RowGenerator = getattr(importlib.import_module(f"benchmarks.{module}"), function)(
        environment, **row.arguments
    )
    return row_generator


def measure(generator: RowGenerator, seconds: float, cores: int) -> dict[str, Any]:
    """Agent steps per second and, if known, the share of the cores' time that each part took."""
    started = time.perf_counter()
    next(generator)
    while time.perf_counter() - started < WARM_UP_S:
        next(generator)
    agent_steps, core_s = 0, defaultdict[str, float](float)
    started = time.perf_counter()
    while (passed_s := time.perf_counter() - started) < seconds:
        progress = next(generator)
        agent_steps += progress.agent_steps
        for part, spent_s in progress.core_s.items():
            core_s[part] += spent_s
    report: dict[str, Any] = {"agent_steps_per_s": agent_steps / passed_s}
    if core_s:
        shares = {part: core_s[part] / (cores * passed_s) for part in PARTS}
        report["time"] = shares | {"rest": max(0.0, 1 - sum(shares.values()))}
    return report


def main() -> int:
    """Measure the row named by the arguments."""
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
        generator = start(row, args.environment)
        with closing(generator):
            report = measure(generator, args.seconds, args.cores)
    except ModuleNotFoundError as error:
        sys.stderr.write(f"{error.name} is not installed\n")
        return MISSING
    sys.stdout.write(json.dumps(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
