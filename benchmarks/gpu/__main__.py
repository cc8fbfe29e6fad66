"""Runs the stages of `benchmarks.gpu.arguments` and writes their results: `python -m benchmarks.gpu`."""

import argparse
import importlib
import os
import platform
import signal
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.gpu.arguments import parse
from benchmarks.gpu.results import TABLE_FILE, Results
from benchmarks.gpu.stages.base import StageContext
from workers.engine.training.nvml import visible_gpus


@dataclass(frozen=True)
class Stage:
    """A stage and its part of the budget."""

    name: str
    """Of its module in `benchmarks.gpu.stages`."""
    limit_s: float
    reserve_s: float
    """What the stages before must leave to it."""


STAGES = (
    Stage("tests", 50.0, 0.0),
    Stage("agreement", 75.0, 40.0),
    Stage("throughput", 200.0, 130.0),
    Stage("peers", 60.0, 31.0),
    Stage("profile", 25.0, 17.0),
    Stage("pong", 260.0, 205.0),
)


def deadline_of(stage: Stage, later: tuple[Stage, ...], now_s: float, end_s: float) -> float:
    """When a stage must have ended: at its limit, or earlier to leave the later ones their reserves.

    Args:
        stage: the stage that starts now.
        later: stages that run after it.
        now_s: time of `time.monotonic`.
        end_s: when the whole budget ends.
    """
    return min(now_s + stage.limit_s, end_s - sum(other.reserve_s for other in later))


def end_by_signals() -> None:
    """Let SIGTERM, and SIGHUP where it is not ignored, end this process as Ctrl-C does: with its children."""

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as by nohup
            signal.signal(number, end)


def main() -> int:
    """Run the stages."""
    args = parse(sys.argv[1:])
    end_by_signals()
    end_s = time.monotonic() + args.budget_s
    folder = args.out.resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        _log(f"--out: {folder} cannot be created: {problem.strerror}")
        return 2
    results = Results(folder, _facts(args))
    results.write()
    stages = tuple(stage for stage in STAGES if not args.only or stage.name in args.only)
    for k, stage in enumerate(stages):
        _log(f"{stage.name} ...")
        started = time.monotonic()
        context = StageContext(
            device=args.device,
            is_short=args.short,
            deadline=deadline_of(stage, stages[k + 1 :], started, end_s),
            folder=folder,
            add=_adder(results, stage.name),
            rows_of=results.rows,
        )
        error = None
        try:
            importlib.import_module(f"benchmarks.gpu.stages.{stage.name}").run(context)
        except Exception as problem:  # the next stage goes on
            error = f"{type(problem).__name__}: {problem}"
            traceback.print_exc()
        results.end_stage(stage.name, time.monotonic() - started, error)
        _log(f"{stage.name}: {time.monotonic() - started:.1f} s")
    sys.stdout.write((folder / TABLE_FILE).read_text("utf-8"))
    return 1 if results.has_failures() else 0


def _adder(results: Results, stage: str) -> Any:
    def add(row: str, record: dict[str, Any]) -> None:
        results.add(stage, row, record)
        if "error" in record:
            _log(f"{stage}: {row}: {record['error']}")

    return add


def _facts(args: argparse.Namespace) -> dict[str, Any]:
    """The machine, the versions and the arguments of this call."""
    facts: dict[str, Any] = {
        "device": args.device,
        "short": args.short,
        "budget_s": args.budget_s,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": len(os.sched_getaffinity(0)),
        "load_before": os.getloadavg()[0],
        "processor": _processor(),
        "python": platform.python_version(),
    }
    for package in ("torch", "numpy", "ale-py", "gymnasium", "stable-baselines3", "callboard"):
        with suppress(metadata.PackageNotFoundError):
            facts[package] = metadata.version(package)
    for gpu in visible_gpus()[:1]:
        facts |= {"gpu": gpu.device} | {
            name: gpu.load().get(name) for name in ("memory_bytes", "power_limit_w")
        }
    with suppress(OSError):
        facts["driver"] = Path("/proc/driver/nvidia/version").read_text().splitlines()[0]
    return facts


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _log(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
