"""What trained an attempt: code, packages, command and machine.

A module of its own, beside `events`: the engine sends the provenance, the table of attempts stores it, and
the API returns it.
"""

from backend.specs.fields import Frozen


class Provenance(Frozen):
    """The code and the machine of one attempt."""

    version: str
    """Callboard's version."""
    commit: str | None
    """Commit of the checkout that the engine was run from; null if it was not run from one."""
    dirty: bool | None
    """Whether tracked files differed from the commit; null without one."""
    packages: dict[str, str]
    """Package -> version, with Python's among them."""
    command: list[str]
    """Command line of the engine."""
    processor: str
    """Model of the processor."""
    cpu_count: int
    """Cores that the engine may use."""
    gpus: list[str]
    """Models of the machine's GPUs, whether used or not."""
    device: str | None = None
    """Device of the network; null until the engine has started."""
    rollout_workers: int | None = None
    """PAAC's rollout workers, at most one per core: with another number, the same seed gives another series.
    Null for other methods, and until the engine has started."""
