"""Which start set a protocol names, and what a worker needs and reports of it.

Whatever requests evaluations resolves their protocols here; the API of start sets is that of
`backend.replays.start_sets`.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from backend.db import Job, StartSet
from backend.db.base import storable
from backend.db.job import VERIFICATION
from backend.fleet.jobs import repository as jobs
from backend.fleet.jobs.kinds import JobFailed, Written
from backend.platform.errors import Invalid
from backend.runs.starts import repository
from backend.specs.environments.atari import AtariConfig
from backend.specs.environments.base import EnvironmentConfig
from backend.specs.protocols import GREEDY, Protocol, find_protocol, starts_protocol
from backend.specs.run import RunSpec, parse_run_spec
from backend.specs.start_sets import OF_PEOPLE, SMALL_GAMES, StartSetContent

EVALUATION_PROTOCOL = "config.evaluation_protocol"
"""The setting of a run that names its protocol."""
_SOURCES = {"human_starts": OF_PEOPLE, "agent_starts": ("agent", "scripted")}
"""Protocol -> who may have played the games of its sets."""


def resolved(
    session: Session, protocol: str, environment: str, config: EnvironmentConfig, field: str
) -> tuple[str, StartSet | None]:
    """The protocol with the version of its start set, and the set; any other protocol as it is.

    Args:
        session: any session.
        protocol: id of a protocol that the environment has.
        environment: id of the environment.
        config: environment settings of the agent.
        field: what to name if the set cannot be used.

    Raises:
        Invalid: there is no such set, or agents of this environment cannot start from it.
    """
    starts = starts_protocol(protocol)
    if starts is None:
        return protocol, None
    row = repository.version(session, starts.set_name, starts.version)
    title = starts.set_name + ("" if starts.version is None else f"@{starts.version}")
    if row is None:
        raise Invalid.field(field, f"there is no start set {title}: GET /start-sets lists them")
    refusal = _refusal(session, row, starts.base.removesuffix(GREEDY), environment, config)
    if refusal is not None:
        raise Invalid.field(field, f"start set {row.name}@{row.version} {refusal}")
    return starts.model_copy(update={"version": row.version}).id(), row


def _refusal(
    session: Session, row: StartSet, base: str, environment: str, config: EnvironmentConfig
) -> str | None:
    """Why agents cannot start from a set; None if they can."""
    if row.state == "deleted":
        return "has been deleted"
    if (error := verification_error(row, jobs.find(session, VERIFICATION, row.id))) is not None:
        return f"could not be verified: {error}"
    if row.state == "verifying":
        return "is being verified by a worker: try again when it is ready"
    if row.environment != environment:
        return f"is of {row.environment}, and the agent plays {environment}"
    if row.source not in _SOURCES[base]:
        if base == "human_starts":
            return f"was not played by people: use agent_starts:{row.name}, or a set of people's games"
        return f"was played by people: use human_starts:{row.name}"
    if isinstance(config, AtariConfig) and (config.mode, config.difficulty) != (
        row.mode,
        row.difficulty,
    ):
        return "is of another mode or difficulty of the game"
    return None


def pinned(session: Session, spec: RunSpec) -> RunSpec:
    """A run's specification with the version of the start set of its evaluations; any other as it is.

    Raises:
        Invalid: the set does not exist, or agents of this environment cannot start from it.
    """
    chosen = spec.config.evaluation_protocol
    protocol, _ = resolved(session, chosen, spec.environment, spec.environment_config, EVALUATION_PROTOCOL)
    if protocol == chosen:
        return spec
    config = spec.config.model_copy(update={"evaluation_protocol": protocol})
    return spec.model_copy(update={"config": config})


def check_stored(session: Session, spec: Mapping[str, Any]) -> None:
    """Refuse a stored run that is evaluated from a start set which has been deleted.

    Raises:
        Invalid: agents can no longer start from the set.
    """
    if starts_protocol(str(spec["config"].get("evaluation_protocol"))) is not None:
        pinned(session, parse_run_spec(dict(spec)))


def verification_error(row: StartSet, job: Job | None) -> str | None:
    """Why a set could not be verified: a replay differs, or the job failed; None if it was or may still be.

    Args:
        row: the set.
        job: the job that verifies it.
    """
    if row.state == "verifying" and job is not None and job.state == "failed":
        return ((job.error or "").strip().splitlines() or ["unknown error"])[-1]
    return row.error


def protocols_of(row: StartSet) -> list[str]:
    """The ids of the protocols that start from a version of a set, each also greedy."""
    bases = [base for base, sources in _SOURCES.items() if row.source in sources]
    return [f"{base}{suffix}:{row.name}@{row.version}" for base in bases for suffix in ("", GREEDY)]


def is_small(row: StartSet) -> bool:
    """Whether the starts of a set are of so few games that they are much alike."""
    return row.n_games < SMALL_GAMES


def caption(row: StartSet) -> str:
    """What a set holds, in words: starts, games, people and frames."""
    of_people = "" if row.n_people == 0 else f" by {_counted(row.n_people, 'person', 'people')}"
    if row.source == "human_imported":
        of_people += " of another installation (imported)"
    frames = "" if row.n_frames is None else f", {row.n_frames:,} frames"
    small = f"; small: fewer than {SMALL_GAMES} games" if is_small(row) else ""
    games = _counted(row.n_games, "game", "games")
    return f"{_counted(row.n_points, 'start', 'starts')} from {games}{of_people}{frames}{small}"


def _counted(n: int, noun: str, plural: str) -> str:
    return f"{n:,} {noun if n == 1 else plural}"


def protocols(session: Session, environment: str, supported: Sequence[str]) -> list[tuple[Protocol, int]]:
    """The protocols that start from the sets of an environment, each also greedy, with the sets' points."""
    if not set(_SOURCES) & set(supported):
        return []
    return [
        (_protocol(row, protocol, supported), row.n_points)
        for row in repository.ready(session, environment)
        for protocol in protocols_of(row)
    ]


def _protocol(row: StartSet, name: str, supported: Sequence[str]) -> Protocol:
    """A protocol that starts from a set, with what the set holds in its description."""
    protocol = find_protocol(name, supported, row.environment)
    return protocol.model_copy(update={"description": f"{protocol.description} The set: {caption(row)}."})


def caption_of(session: Session, protocol: str) -> str | None:
    """What the start set of a protocol holds, in words; None if the protocol has none."""
    starts = starts_protocol(protocol)
    row = None if starts is None else repository.version(session, starts.set_name, starts.version)
    return None if row is None else caption(row)


def states_of(session: Session, protocol: str) -> bytes | None:
    """The emulator states of a protocol's start set; None if it is deleted or not verified."""
    starts = starts_protocol(protocol)
    assert starts is not None
    row = repository.version(session, starts.set_name, starts.version)
    row = None if row is None else repository.get(session, row.id, with_content=True)
    return None if row is None else row.states


def engine_options(session: Session, protocol: str) -> dict[str, Written]:
    """The engine's option for the emulator states of a protocol's start set; none if it has no set.

    Raises:
        JobFailed: the set has been deleted.
    """
    if starts_protocol(protocol) is None:
        return {}
    states = states_of(session, protocol)
    if states is None:
        raise JobFailed(f"the start set of {protocol} has been deleted")
    return {"--starts": Written("starts.npz", states)}


def document_of(session: Session, set_id: str) -> bytes | None:
    """A set's content as JSON; None if it is deleted."""
    row = repository.get(session, set_id, with_content=True)
    return None if row is None or row.document is None else zlib.decompress(row.document)


def store_content(row: StartSet, content: StartSetContent) -> None:
    """Set a row's columns that hold its content."""
    config = AtariConfig.model_validate(content.games[0].environment_config)
    row.document = zlib.compress(content.model_dump_json().encode(), 9)
    row.sha256 = content.checksum()
    row.environment, row.source, row.n_people = content.environment, content.source, content.n_people
    row.n_points, row.n_games = len(content.points), len(content.games)
    row.rom_md5, row.ale_py = content.rom_md5, content.ale_py
    row.mode, row.difficulty = config.mode, config.difficulty


def record_verified(session: Session, set_id: str, content: StartSetContent, states: bytes) -> None:
    """Record that a worker has verified a set; one that was deleted meanwhile stays deleted."""
    row = repository.get(session, set_id, for_update=True)
    if row is None or row.state == "deleted":
        return
    store_content(row, content)
    last_frames: dict[int, int] = {}
    for point in content.points:
        last_frames[point.game] = max(last_frames.get(point.game, 0), point.frames or 0)
    row.n_frames = sum(last_frames.values())
    row.states, row.state, row.error = states, "ready", None


def record_mismatch(session: Session, set_id: str, error: str) -> None:
    """Record that replaying a set gave other states than it has."""
    row = repository.get(session, set_id, for_update=True)
    if row is not None and row.state != "deleted":
        row.state, row.error = "failed", storable(error)[:2_000]
