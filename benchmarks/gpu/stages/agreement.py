"""Whether every method computes the same on the GPU as on the CPU; see `benchmarks.gpu.rows.agreement`."""

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
    context.run_rows(f"{_FUNCTIONS}:gradient", gradients)
    graphs = [
        Row(
            f"graphs {algorithm} {networks[0]} {precision}",
            {
                "algorithm": algorithm,
                "device": context.device,
                "config": {
                    "network": networks[0],
                    "precision": precision,
                    "n_e": 4 if context.is_short else 16,
                    "n_w": min(4, context.cores),
                },
                "updates": 3 if context.is_short else 8,
            },
            limit_s=25.0,
            facts={"check": "graphs"},
        )
        for algorithm, precision in (("paac", "fp32"), ("paac", "bf16"), ("paac_q", "fp32"))
    ]
    context.run_rows(f"{_FUNCTIONS}:graphs", graphs)
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
    context.run_rows(f"{_FUNCTIONS}:checkpoint", checkpoints)
    context.run_rows(f"{_FUNCTIONS}:cpu_only", [Row("CPU only", limit_s=10.0, facts={"check": "cpu_only"})])


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
