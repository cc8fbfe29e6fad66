"""What every row gives while it is measured, and what those that replay begin with."""

from collections.abc import Generator
from dataclasses import dataclass, field

PARTS = ("environment", "choosing", "learning")
"""What a decision's time may go to; what no part accounts for is the rest."""

REPLAY_CAPACITY = 20_000
"""Decisions remembered: of more, none would be seen while a row is measured."""
LEARNING_STARTS = 1_000
"""Decisions before the first update: the papers' tens of thousands cost minutes."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a row did since it was last asked."""

    agent_steps: int
    core_s: dict[str, float] = field(default_factory=dict)
    """Part -> seconds of all cores together; empty where it is not known."""


Turns = Generator[Made, None, None]
"""Makes agent steps for ever; the first only once the row learns as it always will. `close` ends all."""
