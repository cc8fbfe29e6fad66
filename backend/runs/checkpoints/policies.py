"""Checkpoints whose policies can act in a recorded episode: the run's own, or one of another run."""

from sqlalchemy.orm import Session

from backend.db import Checkpoint, Run
from backend.platform.errors import Conflict, Invalid, NotFound
from backend.runs.checkpoints import service
from backend.runs.runs import external
from backend.runs.runs import service as runs
from backend.specs.fields import marked_fields
from backend.specs.play import agent_refusal
from backend.specs.problems import quoted
from backend.specs.run import RunSpec


def policy_in_episode(
    session: Session, run: Run, agent_steps: int, checkpoint_id: str | None, *, lock: bool = False
) -> tuple[Checkpoint, RunSpec]:
    """A checkpoint that takes the observations of an episode of a run, and its run's specification.

    Args:
        session: a session; a writing one to lock.
        run: the episode's run.
        agent_steps: those of the run at the episode's end.
        checkpoint_id: of any run in the same environment; None: of the checkpoints of the episode's run the
            one that is nearest to the episode.
        lock: whether to lock the checkpoint's run, so that retention does not remove the file meanwhile.

    Raises:
        Invalid: `checkpoint` names none that is stored, or one of an external run, of another environment, or
            of an agent that sees or acts otherwise.
        Conflict: the episode's run has no checkpoint, or is external.
    """
    spec = external.trainable_spec(run, "evaluate")
    if checkpoint_id is None:
        stored = service.resumable(session, run.id)
        if not stored:
            raise Conflict("the episode's run has no checkpoint: name one of another run")
        return min(stored, key=lambda row: abs(row.agent_steps - agent_steps)), spec
    try:
        checkpoint = service.get_stored(session, checkpoint_id)
    except NotFound as error:
        raise Invalid.field("checkpoint", str(error)) from None
    if checkpoint.run_id == run.id:
        return checkpoint, spec
    try:
        other = external.trainable_spec(runs.get(session, checkpoint.run_id, for_update=lock), "evaluate")
        if lock:  # it may have been removed before the lock
            session.refresh(checkpoint)
            service.get_stored(session, checkpoint_id)
    except (Conflict, NotFound) as error:
        raise Invalid.field("checkpoint", str(error)) from None
    if other.environment != spec.environment:
        message = f"is of {other.environment}, and the episode of {spec.environment}"
        raise Invalid.field("checkpoint", message)
    for name in sorted(marked_fields(type(spec.environment_config), "shape")):
        wanted, has = getattr(spec.environment_config, name), getattr(other.environment_config, name)
        if wanted != has:
            message = (
                f"was trained with {name} {quoted(has)}, and the episode was played with {quoted(wanted)}"
            )
            raise Invalid.field("checkpoint", message)
    played, trained = (of.environment_config.model_dump(mode="json") for of in (spec, other))
    refusal = agent_refusal(spec.catalogue_environment, trained, played)
    if refusal is not None:
        raise Invalid.field("checkpoint", refusal)
    return checkpoint, other
