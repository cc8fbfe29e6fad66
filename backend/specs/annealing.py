"""Annealed learning rates: what a resume with another agent-step limit does to them."""

from typing import Any, Literal

from backend.specs.problems import FieldProblem, InvalidSpec
from backend.specs.run import RunSpec

Annealing = Literal["keep", "extend"]
"""`keep` the schedule of a linear learning rate, which is 0 from its end on, or `extend` it to the new
limit."""

RESUMED_WITH_OTHER_RATES = "resumed with other learning rates"
"""Reason of a transition: from then on the run differs from one that was started with its specification."""


def is_annealed(spec: RunSpec) -> bool:
    """Whether the learning rate falls linearly over the run."""
    return getattr(spec.config, "learning_rate_schedule", "constant") == "linear"


def annealing_warning(spec: dict[str, Any]) -> str | None:
    """Why `annealing_agent_steps` of a spec, given as JSON, has no effect; None if it has, or is not set."""
    if spec.get("annealing_agent_steps") is None or spec["config"].get("learning_rate_schedule") == "linear":
        return None
    return "annealing_agent_steps has no effect on runs with a constant learning rate: leave it out"


def with_annealing(before: RunSpec, after: RunSpec, annealing: Annealing | None) -> RunSpec:
    """The spec of a resumed run.

    Args:
        before: the run as it trained until now.
        after: the run with new limits.
        annealing: the choice; None: `annealing_agent_steps` stays as it was; if unset, the new limit counts.

    Raises:
        InvalidSpec: a choice is given, but the learning rate is constant.
    """
    if annealing is None:
        return after.model_copy(update={"annealing_agent_steps": before.annealing_agent_steps})
    if not is_annealed(before):
        message = "the learning rate of this run is constant: leave it out"
        raise InvalidSpec([FieldProblem(field="annealing", message=message)])
    kept = before.annealed_over_agent_steps if annealing == "keep" else None
    return after.model_copy(update={"annealing_agent_steps": kept})


def annealing_notice(before: RunSpec, after: RunSpec, agent_steps: int) -> str | None:
    """What a resume at this agent step does to the learning rate immediately; None if nothing.

    Args:
        before: the spec until now.
        after: the spec from now on.
        agent_steps: agent steps of the checkpoint.
    """
    was, now = before.annealed_over_agent_steps, after.annealed_over_agent_steps
    if not is_annealed(after) or was is None or now is None or was == now:
        return None
    left_before, left = max(0.0, 1 - agent_steps / was), max(0.0, 1 - agent_steps / now)
    return (
        f"the learning rate now falls to 0 over {now:,} agent steps instead of {was:,}: at {agent_steps:,} "
        f"it changes from {left_before:.0%} to {left:.0%} of its initial value"
    )
