"""What the metrics are called and measured in. One without an entry is shown by its own name."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """How a metric is labelled."""

    title: str
    axis: str
    """Name of its axis, unit included; short enough for a chart 200 pixels high."""


@dataclass(frozen=True)
class XAxis:
    """How an x column is labelled."""

    axis: str
    hover_format: str
    """D3 format of one value."""


X_AXES: dict[str, XAxis] = {
    "agent_steps": XAxis("Agent steps", ",.0f"),
    "frames": XAxis("Emulator frames", ",.0f"),
    "wall_time_s": XAxis("Training time (s)", ",.1f"),
    "episodes": XAxis("Training episodes", ",.0f"),
}

METRICS: dict[str, Metric] = {
    "rollout/episode_return": Metric("Training return", "Return (true score)"),
    "rollout/episode_length": Metric("Episode length", "Length (agent steps)"),
    "loss/policy": Metric("Policy loss", "Policy loss"),
    "loss/value": Metric("Value loss", "Value loss"),
    "loss/entropy": Metric("Policy entropy", "Entropy (nats)"),
    "loss/td": Metric("TD loss", "TD loss"),
    "optim/learning_rate": Metric("Learning rate", "Learning rate"),
    "optim/grad_norm": Metric("Gradient norm before clipping", "L2 norm"),
    "paac/time_environment": Metric("Time in the environments", "Share of the time"),
    "paac/time_choosing": Metric("Time choosing actions", "Share of the time"),
    "paac/time_learning": Metric("Time learning", "Share of the time"),
    "paac/time_rest": Metric("Time waiting and passing messages", "Share of the time"),
    "speed/agent_steps_per_s": Metric("Speed in agent steps", "Agent steps/s"),
    "speed/frames_per_s": Metric("Speed in emulator frames", "Emulator frames/s"),
    "speed/updates_per_s": Metric("Updates (TPS)", "Updates/s"),
    "speed/predictions_per_s": Metric("Predictions (PPS)", "Predictions/s"),
    "system/cpu_pct": Metric("Processor use", "% of one core"),
    "system/rss_bytes": Metric("Memory", "Memory (bytes)"),
    "system/gpu_pct": Metric("GPU use", "%"),
}

PROTOCOLS: dict[str, str] = {
    "noop_starts": "no-op starts",
    "human_starts": "human starts",
    "sticky_actions": "sticky actions",
    "plain": "plain starts",
}
"""Ways of scoring an agent, in words."""


def describe(metric: str) -> Metric:
    """Title and axis of any metric, known or not."""
    if metric in METRICS:
        return METRICS[metric]
    section, _, name = metric.rpartition("/")
    if section.startswith("eval/") and name == "mean_return":
        protocol = section.removeprefix("eval/")
        words = PROTOCOLS.get(protocol, protocol)
        return Metric(f"Evaluation, {words}", f"Return ({words})")
    if section.startswith("eval/") and name == "best_kept_return":
        return Metric("Evaluation of the best-kept parameters", "Return (best kept)")
    words = name.replace("_", " ")
    return Metric(words[:1].upper() + words[1:], words[:1].upper() + words[1:])
