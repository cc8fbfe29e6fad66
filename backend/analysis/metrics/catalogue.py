"""Titles and axis labels of metrics. A metric without an entry is called by its whole name, since the last
parts of several names may be equal; the last part labels its axis."""

from dataclasses import dataclass

from backend.specs.host_load import CPU_GRANTED
from backend.specs.protocols import protocol_title
from callboard import known_tags

FRAMES = "total/frames"
"""Emulator frames of a whole run: no series, but a column of tables."""


@dataclass(frozen=True)
class Metric:
    """Labels of a metric."""

    title: str
    axis: str
    """Axis label with the unit; short enough for a chart 200 pixels high."""
    divisor: float = 1.0
    """Figures draw the values divided by it, such as MiB in place of bytes."""


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

METRICS: dict[str, Metric] = {
    EPISODE_RETURN: Metric("Training return", "Return (true score)"),
    "rollout/episode_length": Metric("Episode length", "Length (agent steps)"),
    "loss/policy": Metric("Policy loss", "Policy loss"),
    "loss/value": Metric("Value loss", "Value loss"),
    "loss/entropy": Metric("Policy entropy", "Entropy (nats)"),
    "loss/td": Metric("TD loss", "TD loss"),
    "optim/learning_rate": Metric("Learning rate", "Learning rate"),
    "optim/grad_norm": Metric("Gradient norm before clipping", "L2 norm"),
    "paac/time_environment": Metric("Time in environments", "Share of time"),
    "paac/time_choosing": Metric("Time in action selection", "Share of time"),
    "paac/time_learning": Metric("Time in learning", "Share of time"),
    "paac/time_rest": Metric("Time in communication and waiting", "Share of time"),
    "ga3c/n_actors": Metric("Agents (N_A)", "Agents"),
    "ga3c/n_predictors": Metric("Predictors (N_P)", "Predictors"),
    "ga3c/n_trainers": Metric("Trainers (N_T)", "Trainers"),
    "ga3c/training_queue": Metric("Training queue", "Requests"),
    "ga3c/prediction_queue": Metric("Prediction queue", "Requests"),
    "ga3c/training_batch": Metric("Training batch", "Batch size"),
    "ga3c/prediction_batch": Metric("Prediction batch", "Batch size"),
    "speed/agent_steps_per_s": Metric("Throughput in agent steps", "Agent steps/s"),
    "speed/frames_per_s": Metric("Throughput in emulator frames", "Emulator frames/s"),
    "speed/updates_per_s": Metric("Updates (TPS)", "Updates/s"),
    "speed/predictions_per_s": Metric("Predictions (PPS)", "Predictions/s"),
    FRAMES: Metric("Emulator frames", "Emulator frames"),
    "system/cpu_pct": Metric("CPU usage", "% of one core"),
    CPU_GRANTED: Metric("CPU time granted", "% of the time that processes could run"),
    "system/rss_bytes": Metric("Memory", "Memory (MiB)", MIB),
    "system/gpu_pct": Metric("GPU usage", "% of the time"),
    "system/gpu_memory_bytes": Metric("GPU memory", "GPU memory (MiB)", MIB),
    "system/gpu_power_w": Metric("GPU power", "Power (W)"),
}


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
