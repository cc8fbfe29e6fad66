"""Whether a run's precision suits the processor."""

from contextlib import suppress
from pathlib import Path

from backend.specs.algorithms.common import bf16_instructions
from backend.specs.run import RunSpec


def bf16_warning(spec: RunSpec, device: str, cpuinfo: Path = Path("/proc/cpuinfo")) -> str | None:
    """What to log for a run in bf16 on a processor without it; None if all is well.

    Args:
        spec: the run's.
        device: the learner's, `cpu` or a GPU.
        cpuinfo: the kernel's description of the processor.
    """
    if spec.settings.get("precision") != "bf16" or device != "cpu":
        return None
    with suppress(OSError):
        if bf16_instructions(cpuinfo.read_text()):
            return None
    return (
        "config.precision: this processor has no bf16 instructions (avx512_bf16 or amx_bf16), so bf16 is "
        "emulated and slower than fp32; use fp32, or a host with such a processor or a GPU"
    )
