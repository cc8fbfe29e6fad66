"""Whether a run fits a host, and which presets of its algorithm do."""

from contextlib import suppress

from backend.specs.algorithms import ALGORITHMS
from backend.specs.problems import InvalidSpec
from backend.specs.run import RunSpec, parse_run_spec

MAX_PROCESSES_PER_CORE = 32
"""More take minutes to start, and slow each other down."""


def memory_problem(spec: RunSpec, memory_bytes: int) -> str | None:
    """Why the run does not fit a host with `memory_bytes`, and what would fit; None if it fits."""
    if spec.memory_estimate_bytes <= memory_bytes:
        return None
    needed, available = spec.memory_estimate_bytes / 2**30, memory_bytes / 2**30
    advice = memory_advice(spec, memory_bytes)
    return f"it needs about {needed:.1f} GiB of memory, this machine has {available:.1f} GiB: {advice}"


def memory_advice(spec: RunSpec, memory_bytes: int) -> str:
    """What to change so that a host with `memory_bytes` can run it."""
    return _advice([preset for preset in _presets(spec) if preset[1].memory_estimate_bytes <= memory_bytes])


def process_warning(spec: RunSpec, cpu_count: int) -> str | None:
    """Why a host with `cpu_count` cores runs it badly, and what runs well; None if it runs well."""
    n = spec.config.ray_processes
    if n <= MAX_PROCESSES_PER_CORE * cpu_count:
        return None
    fitting = [
        preset
        for preset in _presets(spec)
        if preset[1].config.ray_processes <= MAX_PROCESSES_PER_CORE * cpu_count
    ]
    cores = f"{cpu_count} cores" if cpu_count > 1 else "one core"
    return f"{n} processes on {cores} start and train slowly: {_advice(fitting)}"


def _presets(spec: RunSpec) -> list[tuple[str, RunSpec]]:
    """Title and id of the presets for the run's environment, each as a run with its limits."""
    environment, presets = spec.catalogue_environment, []
    request = spec.model_dump(mode="json", include={"algorithm", "environment", "custom", "stop"})
    for preset in ALGORITHMS[spec.algorithm].presets:
        if preset.suits(environment):
            chosen = {"config": preset.config, "environment_config": preset.environment_config}
            with suppress(InvalidSpec):
                presets.append((f"{preset.title} ({preset.id})", parse_run_spec(request | chosen)))
    return presets


def _advice(fitting: list[tuple[str, RunSpec]]) -> str:
    if not fitting:
        return "reduce the numbers of processes and the replay memory"
    return f"the preset {' or '.join(name for name, _ in fitting)} fits"
