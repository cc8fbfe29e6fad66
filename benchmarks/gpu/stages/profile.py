"""Where the time of the fastest row goes, kernel by kernel: `profile.txt`."""

from typing import Any

from benchmarks.gpu.row_runner import Row
from benchmarks.gpu.stages.base import StageContext
from benchmarks.gpu.stages.throughput import GAME


def run(context: StageContext) -> None:
    """Profile the fastest PAAC row, of the network `nature` if it was measured."""
    best = fastest(context.rows_of("throughput"))
    if best is None:
        context.add("profile", {"error": "no PAAC row was measured"})
        return
    config = {name: best[name] for name in ("network", "precision", "n_e", "n_w")}
    arguments = {
        "environment": GAME,
        "device": context.device,
        "config": config,
        "updates": 4 if context.is_short else 20,
        "path": str(context.folder / "profile.txt"),
    }
    row = Row(f"profile of {best['row']}", arguments, limit_s=20.0, facts={"file": "profile.txt"})
    context.run_rows("benchmarks.gpu.rows.profile:profile", [row])


def fastest(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The PAAC row with the most agent steps a second, of `nature` if there is one."""
    measured = [row for row in rows if row["method"] == "paac" and "agent_steps_per_s" in row]
    measured = [row for row in measured if row["graphs"] and row["groups"] == 2]  # as runs train
    chosen = [row for row in measured if row["network"] == "nature"] or measured
    return max(chosen, key=lambda row: float(row["agent_steps_per_s"]), default=None)
