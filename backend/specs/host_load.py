"""The load of a host: its worker reports it, the table of hosts stores it, and the API returns it."""

from pydantic import Field

from backend.specs.fields import Schema

CPU_GRANTED = "system/cpu_granted_pct"
"""Metric of a run: processor time of its processes, in % of that and their waiting for a core."""
STARVED_PCT = 50.0
"""Below it a run waits longer for a core than it has one: its times and rates are those of other programs."""


class GpuLoad(Schema):
    """Load of one GPU; null for values it does not report."""

    index: int | None = None
    """Its number on the host, as `nvidia-smi` prints it."""
    gpu_pct: float | None = None
    """Utilisation of the GPU in per cent."""
    memory_used_bytes: float | None = None
    """Memory of the GPU that is in use."""
    memory_bytes: float | None = None
    """Memory of the GPU."""
    power_w: float | None = None
    """Power draw of the GPU in watts."""
    power_limit_w: float | None = None
    """Limit of the power draw in watts."""


class RecentLoad(Schema):
    """Utilisation from 0 to 1 in the latest readings, oldest first."""

    cpu: list[float] = Field(default=[])
    """Utilisation of all cores together."""
    memory: list[float] = Field(default=[])
    """Share of the host's memory that was in use."""
    gpus: list[list[float]] = Field(default=[])
    """One list per GPU."""
    duration_s: float | None = None
    """From the oldest reading to the latest; null from workers that do not report it."""


class HostLoad(Schema):
    """Load of a host; null for values it does not report."""

    cpu_pct: float | None = None
    """Utilisation of all cores together since the previous measurement."""
    memory_used_bytes: float | None = None
    """Memory of the host that is in use."""
    claimable_memory_bytes: int | None = None
    """Largest memory estimate of a run that it claims: free memory, less what its runs may still grow by."""
    disk_bytes: int | None = None
    """Size of the disk of its run directories."""
    disk_free_bytes: int | None = None
    """Free space on the disk of its run directories."""
    disk_problem: str | None = None
    """Why it claims no runs; null while its disk has space and works."""
    package_problems: dict[str, str] = Field(default={})
    """Distribution with algorithms, with its version -> why the host cannot train them."""
    recorder_lag_s: float | None = None
    """Longest time since all that one of its engines had logged was recorded."""
    gpus: list[GpuLoad] = Field(default=[])
    """Load of each GPU."""
    recent: RecentLoad = RecentLoad()
    """Utilisation in the latest readings."""
