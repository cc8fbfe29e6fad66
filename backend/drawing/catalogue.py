"""Titles and axis labels of metrics. A metric without an entry is called by its whole name, since the last
parts of several names may be equal; the last part labels its axis."""

from dataclasses import dataclass

from backend.specs.algorithms import ALGORITHMS
from backend.specs.host_load import CPU_GRANTED
from backend.specs.metrics import EXPLAINED_VARIANCE, Metric
from backend.specs.protocols import protocol_title
from callboard import known_tags

FRAMES = "total/frames"
"""Emulator frames of a whole run: no series, but a column of tables."""


@dataclass(frozen=True)
class XAxis:
    """Labels of an x column."""

    axis: str
    hover_format: str
    """D3 format of a value."""
    unit: str


X_AXES: dict[str, XAxis] = {
    "agent_steps": XAxis("Agent steps", ",.0f", "agent steps"),
    "iterations": XAxis("Iterations", ",.0f", "iterations"),
    "seconds": XAxis("Seconds, as its script counts them", ",.0f", "s"),
    "frames": XAxis("Emulator frames", ",.0f", "frames"),
    "updates": XAxis("Updates", ",.0f", "updates"),
    "wall_time_s": XAxis("Training time (s)", ",.1f", "s"),
    "clock_time_s": XAxis("Clock time since the start (s)", ",.1f", "s"),
    "episodes": XAxis("Training episodes", ",.0f", "episodes"),
}

EPISODE_RETURN = known_tags.EPISODE_RETURN

MIB = 2.0**20

_OF_MANY: dict[str, Metric] = {
    EPISODE_RETURN: Metric("Training return", "Return (true score)"),
    "rollout/episode_length": Metric("Episode length", "Length (agent steps)"),
    "loss/policy": Metric("Policy loss", "Policy loss"),
    "loss/value": Metric("Value loss", "Value loss"),
    "loss/entropy": Metric("Policy entropy", "Entropy (nats)"),
    "loss/td": Metric("TD loss", "TD loss"),
    "value/mean": Metric("Value of the latest states", "V, or max Q"),
    EXPLAINED_VARIANCE: Metric("Explained variance of the returns", "1 − Var[R − V] / Var[R]"),
    "optim/learning_rate": Metric("Learning rate", "Learning rate"),
    "optim/grad_norm": Metric("Gradient norm before clipping", "L2 norm"),
    "speed/agent_steps_per_s": Metric("Throughput in agent steps", "Agent steps/s"),
    "speed/frames_per_s": Metric("Throughput in emulator frames", "Emulator frames/s"),
    "speed/updates_per_s": Metric("Updates (TPS)", "Updates/s"),
    FRAMES: Metric("Emulator frames", "Emulator frames"),
    "system/cpu_pct": Metric("CPU usage", "% of one core"),
    CPU_GRANTED: Metric("CPU time granted", "% of the time that processes could run"),
    "system/rss_bytes": Metric("Memory", "Memory (MiB)", MIB),
    "system/gpu_pct": Metric("GPU usage", "% of the time"),
    "system/gpu_memory_bytes": Metric("GPU memory", "GPU memory (MiB)", MIB),
    "system/gpu_power_w": Metric("GPU power", "Power (W)"),
}
METRICS: dict[str, Metric] = _OF_MANY | {
    name: metric for algorithm in ALGORITHMS.values() for name, metric in algorithm.metrics.items()
}
"""Metrics of many methods and of the engine, and those that an algorithm declares, by name."""


def is_exact(metric: str) -> bool:
    """Whether a metric is drawn as it is: evaluations are means already, and a learning rate follows its
    schedule."""
    return metric.startswith("eval/") or metric == "optim/learning_rate"


def describe(metric: str) -> Metric:
    """Labels of any metric, with or without an entry."""
    if metric in METRICS:
        return METRICS[metric]
    section, _, name = metric.rpartition("/")
    if section.startswith("eval/") and name == "mean_return":
        words = protocol_title(section.removeprefix("eval/"))
        return Metric(f"Evaluation, {words}", f"Return ({words})")
    if section.startswith("eval/") and name == "best_kept_return":
        words = protocol_title(section.removeprefix("eval/"))
        return Metric(f"Evaluation of the best parameters, {words}", f"Return ({words})")
    if name.endswith("_bytes"):
        words = name.removesuffix("_bytes").replace("_", " ")
        return Metric(metric, f"{words[:1].upper()}{words[1:]} (MiB)", MIB)
    words = name.replace("_", " ")
    return Metric(metric, words[:1].upper() + words[1:])
