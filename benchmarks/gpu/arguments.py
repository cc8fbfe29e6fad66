"""The benchmark's arguments, which are checked before anything is installed: by the standard library only."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

BUDGET_S = 480.0
STAGES = ("tests", "agreement", "throughput", "peers", "profile", "pong")
"""In their order; each is a module in `benchmarks.gpu.stages`."""

_DESCRIPTION = """Measures this machine's GPU host.

The stages run in this order, each within its own limit and all within the budget:

    tests       the engine's tests marked `cuda`
    agreement   gradients and one update on CPU and GPU, CUDA graphs, checkpoints from one to the other
    throughput  the emulators alone; PAAC, GA3C and DQN on the GPU, A3C on the cores beside it
    peers       Stable-Baselines3 on the same GPU
    profile     where the time of the fastest row of throughput goes
    pong        three minutes of Pong, full frame

Results are written after each row: `results.json` and `table.md`. With `--device cpu --short` it rehearses:
the same rows, seconds long, with the CPU in the GPU's place. The exit status is 1 if a stage or a row failed,
or if a test or a check did not pass.
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments; what is wrong with them ends the process with exit code 2."""
    parser = argparse.ArgumentParser(
        prog="run", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the results, which is created")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--short", action="store_true", help="small sizes and times, for a rehearsal")
    parser.add_argument("--only", nargs="+", choices=STAGES, metavar="STAGE", help=", ".join(STAGES))
    parser.add_argument("--budget-s", type=float, default=BUDGET_S, metavar="S", help="for all stages")
    parser.add_argument(
        "--wheels",
        type=Path,
        metavar="FOLDER",
        help="that `make gpu-bundle` built, from which the script installs; default: the bundle's",
    )
    parsed = parser.parse_args(arguments)
    if not 0 < parsed.budget_s <= 24 * 3600:
        parser.error(f"argument --budget-s: between 0 and 86400 seconds, got {parsed.budget_s:g}")
    if parsed.only and "profile" in parsed.only and "throughput" not in parsed.only:
        parser.error("argument --only: profile needs throughput, whose fastest row it profiles")
    if parsed.wheels and not parsed.wheels.is_dir():
        state = "is not a folder" if parsed.wheels.exists() else "does not exist"
        parser.error(f"argument --wheels: {parsed.wheels} {state}")
    if problem := _check_out(parsed.out):
        parser.error(f"argument --out: {problem}; name a new folder")
    return parsed


def _check_out(out: Path) -> str | None:
    """Why no results can be written to the folder `out`, whether it exists or is to be created."""
    nearest = next((path for path in (out, *out.parents) if os.path.lexists(path)), Path("/"))
    if not nearest.is_dir():
        return f"{nearest} is a file"
    if not os.access(nearest, os.R_OK | os.W_OK | os.X_OK):
        return f"{nearest} cannot be written to"
    if nearest == out and any(out.iterdir()):
        return f"{out} is not empty"
    return None
