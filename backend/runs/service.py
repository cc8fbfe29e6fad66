"""What may be done to a run, and when."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from backend.db import Run
from backend.db.changes import host_queue, note_work
from backend.errors import Conflict, Invalid, NotFound
from backend.hosts import repository as hosts
from backend.runs import filters, repository
from backend.runs.filters import All, Either, Node, Term, Word
from backend.runs.schemas import MAX_SEEDS, RunChanges
from backend.specs.environments.own import PREFIX
from backend.specs.names import ending_in
from backend.specs.run import MAX_SEED, FieldProblem, InvalidSpec, RunSpec, StopSpec, parse_run_spec
from backend.specs.states import ENDED, LEASED, RunState
from backend.text import unstorable_paths


def create(session: Session, body: dict[str, Any], created_by: str) -> list[Run]:
    """Check a request whole and store its runs, one a seed.

    Raises:
        InvalidSpec: naming every field at fault; nothing is stored.
    """
    return [repository.create(session, spec, created_by=created_by) for spec in _specs(session, body)]


def get(session: Session, run_id: str, *, for_update: bool = False) -> Run:
    """The run.

    Raises:
        NotFound: there is none.
    """
    run = repository.get(session, run_id, for_update=for_update)
    if run is None:
        raise NotFound(f"there is no run {run_id}")
    return run


def change(session: Session, run_id: str, changes: RunChanges) -> Run:
    """Change what may be changed at any time."""
    run = get(session, run_id, for_update=True)
    asked = changes.model_dump(exclude_unset=True)
    if "group" in asked:
        asked["group"] = asked["group"] or None
    # Null stands for "as it is" where the field cannot be empty.
    asked = {name: value for name, value in asked.items() if name == "group" or value is not None}
    if asked:
        repository.change(session, run, asked)
    return run


def archive(session: Session, run_id: str, archived: bool) -> Run:
    """Put a run away, or fetch it back."""
    run = get(session, run_id, for_update=True)
    if archived and run.state not in ENDED:
        raise Conflict(f"the run is {run.state}: stop it before it is put away")
    repository.change(session, run, {"archived": archived})
    return run


def stop(session: Session, run_id: str, *, kill: bool) -> Run:
    """Ask a run to end: politely with a last checkpoint, or at once. Asking twice is harmless.

    Raises:
        Conflict: it has ended already.
    """
    run = get(session, run_id, for_update=True)
    state = RunState(run.state)
    if state in ENDED:
        raise Conflict(f"the run is {state}: there is nothing to stop")
    if state not in LEASED:
        repository.transition(session, run, RunState.STOPPED, "stopped while it waited")
        return run
    wish = "kill" if kill or run.stop_requested == "kill" else "stop"
    if wish != run.stop_requested:
        run.stop_requested = wish
        if run.host is not None:
            note_work(session, host_queue(run.host))
        if state == RunState.STOPPING:
            repository.touch(session, run)
    if state != RunState.STOPPING:
        reason = "asked to end at once" if kill else "asked to stop"
        repository.transition(session, run, RunState.STOPPING, reason)
    return run


def resume(session: Session, run_id: str, bounds: StopSpec | None) -> Run:
    """Queue an ended run again; it goes on from its newest intact checkpoint.

    Raises:
        Conflict: it has not ended, or its bounds are reached and no larger ones are given.
        InvalidSpec: the new bounds do not fit the run's settings.
    """
    run = get(session, run_id, for_update=True)
    state = RunState(run.state)
    if state not in ENDED:
        raise Conflict(f"the run is {state}: only an ended run can be resumed")
    if bounds is not None:
        spec = parse_run_spec(run.spec | {"stop": bounds.model_dump(exclude_none=True)})
        repository.change(session, run, {"stop": spec.stop.model_dump(mode="json")})
    reached = _reached(run)
    if reached:
        errors = [FieldProblem(field=f"stop.{name}", message=message) for name, message in reached]
        raise Conflict(f"the run is {state}: {reached[0][1]}", errors)
    run.error = None
    run.attempts_without_checkpoint = 0
    run.archived = False
    repository.transition(session, run, RunState.QUEUED, "resumed")
    return run


def delete(session: Session, run_id: str) -> None:
    """Delete a run that no worker holds.

    Raises:
        Conflict: a worker holds it.
    """
    run = get(session, run_id, for_update=True)
    if run.state in LEASED:
        raise Conflict(f"the run is {run.state}: stop it before it is deleted")
    repository.delete(session, run)


def listing(
    *,
    ids: Sequence[str] = (),
    states: Sequence[RunState],
    algorithms: Sequence[str],
    environments: Sequence[str],
    tags: Sequence[str],
    group: str | None,
    archived: bool | None,
    search: str | None,
    filter_text: str | None,
) -> Node:
    """One filter from a list's parameters, all of which must hold.

    Raises:
        Invalid: the filter's text cannot be read.
    """
    parts: list[Node] = [
        Either(tuple(Term(field, "=", value) for value in values))
        for field, values in (
            ("id", ids),
            ("state", states),
            ("algorithm", algorithms),
            ("environment", environments),
        )
        if values
    ]
    parts += [Term("tag", "=", tag) for tag in tags]
    if group is not None:
        parts.append(Term("group", "=", group))
    if archived is not None:
        parts.append(Term("archived", "=", archived))
    if search:
        parts.append(Word(search))
    if filter_text:
        try:
            parts.append(filters.parse(filter_text))
        except filters.BadFilter as error:
            raise Invalid.field("filter", str(error)) from None
    return All(tuple(parts))


def _reached(run: Run) -> Sequence[tuple[str, str]]:
    stop = run.spec["stop"]
    found = []
    if stop["agent_steps"] and run.agent_steps >= stop["agent_steps"]:
        message = (
            f"it has done {run.agent_steps:,} agent steps, its bound is {stop['agent_steps']:,}: "
            "give a larger bound"
        )
        found.append(("agent_steps", message))
    if stop["wall_time_s"] and run.wall_time_s >= stop["wall_time_s"]:
        message = (
            f"it has trained {run.wall_time_s:,.0f} s, its bound is {stop['wall_time_s']:,.0f} s: "
            "give a larger bound"
        )
        found.append(("wall_time_s", message))
    if stop["score"] is not None and run.score is not None and run.score >= stop["score"]:
        message = f"its score is {run.score:g}, the bound {stop['score']:g}: give a larger one or none"
        found.append(("score", message))
    return found


def _specs(session: Session, body: dict[str, Any]) -> list[RunSpec]:
    """One spec a seed.

    Raises:
        InvalidSpec: naming every field at fault at once.
    """
    rest = {name: value for name, value in body.items() if name != "seeds"}
    message = "holds a character that cannot be stored"
    problems = [FieldProblem(field=path or "body", message=message) for path in unstorable_paths(body)]
    if rest.pop("own", None) is not None:
        problems.append(FieldProblem(field="own", message="no such setting"))
    environment = body.get("environment")
    if isinstance(environment, str) and environment.startswith(PREFIX):
        described, _ = hosts.own_worlds(session).get(environment, (None, []))
        rest["own"] = None if described is None else described.model_dump(mode="json")
    seeds = body.get("seeds")
    if seeds is not None:
        problems += _seed_problems(seeds, "seed" in body)
    try:
        spec = parse_run_spec(rest)
    except InvalidSpec as error:
        named = {problem.field for problem in problems}
        raise InvalidSpec(problems + [p for p in error.problems if p.field not in named]) from None
    if problems:
        raise InvalidSpec(problems)
    if seeds is None:
        return [spec]
    return [spec.model_copy(update={"seed": seed, "name": _name(spec, seed, len(seeds))}) for seed in seeds]


def _name(spec: RunSpec, seed: int, n_seeds: int) -> str | None:
    """The name asked for; of several runs each with its seed behind it, or nobody could tell them apart."""
    if spec.name is None or n_seeds == 1:
        return spec.name
    return ending_in(f" seed {seed}", spec.name)


def _seed_problems(seeds: Any, also_seed: bool) -> list[FieldProblem]:
    problems = []
    if not isinstance(seeds, list) or not 1 <= len(seeds) <= MAX_SEEDS:
        problems.append(FieldProblem(field="seeds", message=f"should be a list of 1 to {MAX_SEEDS} seeds"))
    else:
        problems += [
            FieldProblem(field=f"seeds.{i}", message=f"should be a whole number from 0 to {MAX_SEED}")
            for i, seed in enumerate(seeds)
            if type(seed) is not int or not 0 <= seed <= MAX_SEED
        ]
        if not problems and len(set(seeds)) < len(seeds):
            problems.append(FieldProblem(field="seeds", message="a seed is there twice"))
    if also_seed:
        problems.append(FieldProblem(field="seed", message="give seed or seeds, not both"))
    return problems
