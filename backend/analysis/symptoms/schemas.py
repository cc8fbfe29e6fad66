"""Response bodies of the training doctor."""

from pydantic import Field

from backend.analysis.symptoms.rules import RuleId
from backend.specs.fields import Schema


class SymptomOut(Schema):
    """Something that is wrong with a run."""

    rule: RuleId
    """The rule that applies."""
    title: str = Field(examples=["Entropy collapse"])
    """Name of the rule, as pages show it."""
    since_agent_steps: int
    """From where on: agent steps, or iterations of a run whose script counts those."""
    text: str
    """What is seen."""
    advice: str = Field(examples=["Raise the entropy weight, or lower the learning rate."])
    """What helps."""
    settings: list[str] = Field(examples=[["beta", "learning_rate"]])
    """The run's settings that help, the likeliest first; empty if it has none of them."""
    source: str = Field(examples=["Mnih et al. 2016, section 4; Jones 2021"])
    """Papers and guides that the rule is from."""


class Symptoms(Schema):
    """What the training doctor says of a run."""

    items: list[SymptomOut]
    """What is wrong, by its own series; mostly nothing."""
