"""What an attempt reports until it trains: what it is trained with, whether it fits this machine, phases.

Apart from `loop`, which has what repeats: all of this is reported once, before the first step.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from backend.specs.algorithms.common import bf16_instructions
from backend.specs.algorithms.memory import RANDOM_DECISIONS
from backend.specs.events import ProvenanceEvent, StartedEvent, StartingEvent
from backend.specs.fit import process_warning
from backend.specs.run import RunSpec
from workers.engine.methods.base import Learner
from workers.engine.processes.phases import listening
from workers.engine.training.journal import Journal
from workers.engine.training.nvml import Gpu
from workers.engine.training.provenance import provenance


def log_provenance(journal: Journal, spec: RunSpec) -> dict[str, str]:
    """Log the attempt's provenance, and a warning if it does not fit this machine.

    Returns:
        The versions of its packages.
    """
    trained_with = provenance()
    journal.emit(ProvenanceEvent(provenance=trained_with))
    if (warning := process_warning(spec, len(os.sched_getaffinity(0)))) is not None:
        journal.log(warning, "warning")
    journal.flush()
    return trained_with.packages


def log_started(
    journal: Journal,
    spec: RunSpec,
    learner: Learner,
    gpu: Gpu | None,
    resumed_from: str | None,
    packages: dict[str, str],
) -> None:
    """Log that the learner is ready to train, from the agent step of its checkpoint on, or from 0.

    A GPU that NVML knows is logged by its number on the machine, otherwise by torch's in this process.
    """
    agent_steps = journal.counters.agent_steps
    device = learner.device if gpu is None else gpu.device
    journal.emit(
        StartedEvent(
            time=time.time(),
            device=device,
            pid=os.getpid(),
            resumed_from=resumed_from,
            agent_steps=agent_steps,
            versions=packages,
            rollout_workers=learner.n_rollout_workers,
        )
    )
    journal.log(
        f"resumed from {resumed_from} at {agent_steps:,} agent steps"
        if resumed_from
        else f"training {spec.algorithm} on {spec.environment}, seed {spec.seed}, on {device}"
    )
    if (play := learner.random_play).frames:
        journal.log(
            f"observations are centred by {RANDOM_DECISIONS:,} random decisions, {play.frames:,} frames, in "
            f"{play.time_s:.1f} s; the pixels' deviation is {play.deviation:.1f} grey levels"
        )
    if (warning := bf16_warning(spec, device)) is not None:
        journal.log(warning, "warning")
    journal.flush()


@contextmanager
def logged_phases(journal: Journal) -> Iterator[None]:
    """Log what is done within it, each phase as it begins."""

    def log(phase: str) -> None:
        journal.emit(StartingEvent(time=time.time(), phase=phase))
        journal.flush()

    with listening(log):
        yield


def bf16_warning(spec: RunSpec, device: str, cpuinfo: Path = Path("/proc/cpuinfo")) -> str | None:
    """What to log for a run in bf16 on a processor without it; None if all is well.

    Args:
        spec: the run's specification.
        device: the learner's, `cpu` or a GPU.
        cpuinfo: the kernel's description of the processor.
    """
    if spec.config_values.get("precision") != "bf16" or device != "cpu":
        return None
    with suppress(OSError):
        if bf16_instructions(cpuinfo.read_text()):
            return None
    return (
        "config.precision: this processor has no bf16 instructions (avx512_bf16 or amx_bf16), so bf16 is "
        "emulated and slower than fp32; use fp32, or a host with such a processor or a GPU"
    )
