"""Draws the plots of RESULTS.md from the data beside this file: `python docs/measurements/plots.py`."""

import csv
import io
import re
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

HERE = Path(__file__).resolve().parent
IMAGES = HERE.parent / "images"
COLOURS = ("#2563eb", "#d97706", "#059669", "#7c3aed", "#94a3b8")
WIDTH_IN, DPI = 7, 192
"""The width of a page's text, and two pixels for each of a common screen."""
TRIAL = {
    "ALE/Breakout-v5": "Breakout",
    "ALE/Seaquest-v5": "Seaquest",
    "ALE/SpaceInvaders-v5": "Space Invaders",
}
PRESETS = {"full-frame": "pixels / 255", "full-frame-centred": "centred"}
SHARES = ("environment", "choosing", "learning", "rest")
INTERVALS = {"order statistics, median": "median (shown)", "percentile bootstrap, IQM": "IQM, bootstrap"}


def gpu_rows(pattern: str) -> list[dict[str, str]]:
    """The rows of the call on a GPU host whose names match."""
    with (HERE / "gpu.csv").open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if re.fullmatch(pattern, row["row"])]


def draw_pong(ax: Axes) -> None:
    """Mean return of 100 training episodes over wall time."""
    with (HERE / "gpu-pong.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["mean_return_100"]]
    points = [(float(row["wall_time_s"]), float(row["mean_return_100"])) for row in rows]
    ax.plot(*zip(*points, strict=True), color=COLOURS[0])
    ax.axhline(18, color=COLOURS[4], linestyle="--", linewidth=1)
    ax.set(xlabel="seconds", ylabel="mean return")


def draw_time_usage(ax: Axes) -> None:
    """Shares of the time of PAAC's rollouts and updates, as in the paper's Figure 2."""
    rows = sorted(gpu_rows(r"paac nature fp32 n_e=\d+"), key=lambda row: int(row["n_e"]))
    bottom = [0.0] * len(rows)
    for share, colour in zip(SHARES, COLOURS, strict=False):
        heights = [100 * float(row[f"paac/time_{share}"]) for row in rows]
        ax.bar([row["n_e"] for row in rows], heights, bottom=bottom, color=colour, label=share)
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    ax.legend(fontsize=7, frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.14))
    ax.set(xlabel="environments", ylabel="time, %")


def draw_rates(ax: Axes) -> None:
    """Agent steps per second beside Stable-Baselines3 on the same GPU."""
    rates = {row["row"]: float(row["agent_steps_per_s"]) for row in gpu_rows(".+")}
    bars = {
        "PAAC": rates["paac nature bf16 n_e=256"],
        "A2C, SB3": rates["Stable-Baselines3's A2C, 16 environments in subprocesses"],
        "DQN": rates["dqn nature bf16"],
        "DQN, SB3": rates["Stable-Baselines3's DQN"],
    }
    drawn = ax.bar(list(bars), list(bars.values()), color=[COLOURS[0], COLOURS[4]] * 2)
    ax.bar_label(drawn, fmt="{:,.0f}", fontsize=7)
    ax.set(ylabel="agent steps/s", yscale="log", ylim=(100, 60_000))


def draw_ga3c(ax: Axes) -> None:
    """GA3C's trainings per second by agents, predictors and trainers."""
    rows = gpu_rows(r"ga3c nips [\d/]+")
    names = [row["row"].removeprefix("ga3c nips ") for row in rows]
    ax.bar(names, [float(row["updates_per_s"]) for row in rows], color=COLOURS[0])
    ax.tick_params(axis="x", labelsize=7)
    ax.set(xlabel="$N_A / N_P / N_T$", ylabel="trainings/s")


def draw_trial(ax: Axes, environment: str) -> None:
    """Mean return of 100 training episodes with and without centred observations."""
    with (HERE / "centred.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["environment"] == environment]
    for (preset, label), colour in zip(PRESETS.items(), (COLOURS[4], COLOURS[0]), strict=True):
        points = [
            (int(row["agent_steps"]) / 1e6, float(row["mean_return"]))
            for row in rows
            if row["preset"] == preset
        ]
        ax.plot(*zip(*points, strict=True), color=colour, label=label)
    ax.set(title=TRIAL[environment], xlabel="agent steps, M")


def draw_coverage(ax: Axes) -> None:
    """Lowest coverage of intervals over four kinds of scores, by the number of seeds."""
    lines = (HERE.parent / "statistics.md").read_text("utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("| seeds | Student's t"))
    head = [cell.strip() for cell in lines[start].strip("|").split("|")]
    table = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    columns = {"Student's t, mean": "mean, Student's t", **INTERVALS}
    for (column, label), colour in zip(columns.items(), (COLOURS[4], COLOURS[0], COLOURS[1]), strict=True):
        k = head.index(column)
        points = [(int(row[0]), float(row[k])) for row in table if row[k] != "–"]
        ax.plot(*zip(*points, strict=True), color=colour, label=label)
    ax.axhline(90, color="black", linestyle="--", linewidth=0.8)
    ax.legend(fontsize=7, frameon=False)
    ax.set(xlabel="seeds", ylabel="coverage, %", xticks=range(2, 21, 3))


def save(figure: Figure, name: str) -> None:
    """Write a figure, white behind it, to the documentation's images."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=DPI, bbox_inches="tight")
    image = Image.open(drawn).convert("RGB").quantize(64, method=Image.Quantize.MAXCOVERAGE, kmeans=3)
    image.save(IMAGES / f"{name}.png", optimize=True)
    plt.close(figure)


def main() -> None:
    """Draw all plots."""
    plt.rcParams |= {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    for name, draw in {
        "results-pong": draw_pong,
        "results-time-usage": draw_time_usage,
        "results-rates": draw_rates,
        "results-ga3c": draw_ga3c,
        "results-coverage": draw_coverage,
    }.items():
        figure, ax = plt.subplots(figsize=(WIDTH_IN, 2.8), layout="constrained")
        draw(ax)
        save(figure, name)
    figure, axes = plt.subplots(1, 3, figsize=(WIDTH_IN, 2.2), layout="constrained")
    for ax, environment in zip(axes, TRIAL, strict=True):
        draw_trial(ax, environment)
    axes[0].set(ylabel="mean return")
    axes[0].legend(fontsize=7, frameon=False)
    save(figure, "results-centred")


if __name__ == "__main__":
    main()
