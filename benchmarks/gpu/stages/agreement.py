"""Whether every method computes the same on the GPU as on the CPU; see `benchmarks.gpu.rows.agreement`."""

from typing import Any

from backend.specs.algorithms import ALGORITHMS
from benchmarks.gpu.row_runner import Row
from benchmarks.gpu.stages.base import StageContext

_FUNCTIONS = "benchmarks.gpu.rows.agreement"


def run(context: StageContext) -> None:
    """Gradients and one update, graphs against no graphs, and checkpoints from one device to the other."""
    networks = ("nips",) if context.is_short else ("nature", "nips")
    B = 8 if context.is_short else 32
    gradients = [
        _gradient(context, "paac", network, precision, B)
        for network in networks
        for precision in ("fp32", "bf16")
    ]
    gradients += [_gradient(context, "paac_q", networks[0], precision, B) for precision in ("fp32", "bf16")]
    gradients += [_gradient(context, "dqn", networks[0], precision, B) for precision in ("fp32", "bf16")]
    gradients += [_gradient(context, "ga3c", network, "fp32", B) for network in (*networks, "large")]
    context.run_rows(f"{_FUNCTIONS}:compare_gradients", gradients)
    graphs = [
        _graphs(context, algorithm, networks[0], precision)
        for algorithm in ("paac", "dqn")
        for precision in ("fp32", "bf16")
    ]
    graphs += [_graphs(context, algorithm, networks[0], "fp32") for algorithm in ("paac_q", "ga3c")]
    context.run_rows(f"{_FUNCTIONS}:compare_graphs", graphs)
    checkpoints = [
        Row(
            f"checkpoint {algorithm}",
            {
                "algorithm": algorithm,
                "device": context.device,
                "folder": str(context.folder / "checkpoints"),
            },
            limit_s=25.0,
            facts={"check": "checkpoint"},
        )
        for algorithm in ("paac", "ga3c", "dqn", "paac_q")
    ]
    context.run_rows(f"{_FUNCTIONS}:compare_checkpoints", checkpoints)
    cpu_only = [name for name, algorithm in ALGORITHMS.items() if "cuda" not in algorithm.devices]
    context.add("CPU only", {"check": "cpu_only", "methods": cpu_only})


def _graphs(context: StageContext, algorithm: str, network: str, precision: str) -> Row:
    config: dict[str, Any] = {"network": network}
    match algorithm:
        case "ga3c":
            pass  # always fp32, and without agents here
        case "dqn":  # acts by Q from the first decision on
            config |= {"replay_capacity": 1_000, "learning_starts_agent_steps": 100}
            config |= {"precision": precision, "exploration_anneal_agent_steps": 1}
        case _:
            config |= {"n_e": 4 if context.is_short else 16, "n_w": min(4, context.cores)}
            config |= {"precision": precision}
    return Row(
        f"graphs {algorithm} {network} {precision}",
        {
            "algorithm": algorithm,
            "device": context.device,
            "config": config,
            "updates": 3 if context.is_short else 8,
        },
        limit_s=25.0,
        facts={"check": "graphs"},
    )


def _gradient(context: StageContext, algorithm: str, network: str, precision: str, B: int) -> Row:
    return Row(
        f"gradient {algorithm} {network} {precision}",
        {
            "algorithm": algorithm,
            "network": network,
            "precision": precision,
            "device": context.device,
            "B": B,
        },
        limit_s=25.0,
        facts={"check": "gradient"},
    )
