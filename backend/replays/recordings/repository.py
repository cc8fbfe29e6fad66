"""Recordings of games in the database."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Text, bindparam, cast, delete, exists, func, select, update
from sqlalchemy.orm import Session

from backend.db import Job, PlaySession, Recording, RecordingPart, Run, User, keyset
from backend.db.job import GAME
from backend.db.json_values import json_text
from backend.specs.play import HUMAN_PLAY


def add(session: Session, recording: Recording) -> None:
    """Store a new recording."""
    session.add(recording)
    session.flush()


def add_part(session: Session, part: RecordingPart) -> None:
    """Store a new part."""
    session.add(part)
    session.flush()


def get(session: Session, recording_id: str, *, for_update: bool = False) -> Recording | None:
    """The recording, or None."""
    return session.get(Recording, recording_id, with_for_update=for_update or None)


def part(session: Session, recording_id: str, first_step: int) -> RecordingPart | None:
    """The part of a recording that begins at this step."""
    return session.get(RecordingPart, (recording_id, first_step))


def parts(session: Session, recording_id: str) -> Sequence[RecordingPart]:
    """The parts of a recording, in order."""
    statement = select(RecordingPart).where(RecordingPart.recording_id == recording_id)
    return session.scalars(statement.order_by(RecordingPart.first_step)).all()


def page(
    session: Session,
    *,
    environment: str | None,
    user_id: str | None,
    protocol: str | None,
    episode_id: str | None = None,
    limit: int,
    cursor: str | None,
) -> tuple[list[Recording], str | None]:
    """One page of recordings, latest first, and the cursor of the next page."""
    statement = select(Recording)
    if episode_id is not None:
        statement = statement.where(*_goes_on_from(episode_id))
    for column, value in (
        (Recording.environment, environment),
        (Recording.user_id, user_id),
        (Recording.protocol, protocol),
    ):
        if value is not None:
            statement = statement.where(column == value)
    return keyset.page(
        session,
        statement,
        by=Recording.started_at,
        row_id=Recording.id,
        descending=True,
        limit=limit,
        cursor=cursor,
    )


def _goes_on_from(episode_id: str) -> tuple[ColumnElement[bool], ...]:
    source = Recording.source
    return json_text(source, ("kind",)) == "episode", json_text(source, ("id",)) == episode_id


def from_decision(session: Session, episode_id: str, decision: int, limit: int) -> Sequence[Recording]:
    """The latest ended recordings of games that went on from an episode's decision."""
    statement = (
        select(Recording)
        .where(*_goes_on_from(episode_id), json_text(Recording.source, ("decision",)) == str(decision))
        .where(Recording.ended_at.is_not(None))
    )
    return session.scalars(statement.order_by(Recording.id.desc()).limit(limit)).all()


def _is_closed() -> tuple[ColumnElement[bool], ...]:
    """Conditions that a recording and its session have ended, so that the recording changes no more."""
    is_open = exists().where(PlaySession.id == Recording.session_id, PlaySession.state != "ended")
    return Recording.ended_at.is_not(None), ~is_open


def latest_closed(session: Session, environment: str, protocol: str, limit: int) -> Sequence[Recording]:
    """The latest recordings of an environment with a protocol, but for those of open sessions."""
    statement = select(Recording).where(
        Recording.environment == environment, Recording.protocol == protocol, *_is_closed()
    )
    latest_first = (Recording.started_at.desc(), Recording.id.desc())
    return session.scalars(statement.order_by(*latest_first).limit(limit)).all()


class RecordingCount(NamedTuple):
    """The number of recordings of an environment with a protocol."""

    environment: str
    protocol: str
    n_recordings: int


def count_closed(session: Session, *, protocols: Collection[str], above_frames: int) -> list[RecordingCount]:
    """Count the recordings of more than `above_frames` frames by environment and protocol, but for those of
    open sessions."""
    by = (Recording.environment, Recording.protocol)
    statement = (
        select(*by, func.count())
        .where(Recording.protocol.in_(protocols), Recording.length_frames > above_frames, *_is_closed())
        .group_by(*by)
        .order_by(*by)
    )
    return [RecordingCount(*row) for row in session.execute(statement)]


class GamesOfPerson(NamedTuple):
    """A person's finished games in an environment with one configuration."""

    environment: str
    environment_config: str
    """As JSON."""
    user_id: str
    player: str
    n_games: int
    mean_return: float
    n_frames: int


def _games_of_people() -> Select[Any]:
    config = cast(Recording.environment_config, Text)
    by = (Recording.environment, config, Recording.user_id, User.name)
    return (
        select(
            *by,
            func.count(),
            func.avg(Recording.episode_return),
            func.sum(Recording.length_frames),
        )
        .join(User, User.id == Recording.user_id)
        .where(
            Recording.protocol == HUMAN_PLAY,
            Recording.finished,
            *_is_closed(),
        )
        .group_by(*by)
    )


# Built once: to build one takes longer than to execute it, and each learning curve asks for it.
_GAMES_OF_PEOPLE = _games_of_people()
_GAMES_OF_PEOPLE_IN = _GAMES_OF_PEOPLE.where(Recording.environment == bindparam("environment"))


def games_of_people(session: Session, environment: str | None = None) -> list[GamesOfPerson]:
    """The finished games of people, but for those of open sessions, which may turn out to be a script's."""
    statement = _GAMES_OF_PEOPLE if environment is None else _GAMES_OF_PEOPLE_IN
    given = {} if environment is None else {"environment": environment}
    return [GamesOfPerson(*row) for row in session.execute(statement, given)]


def names(session: Session, recordings: Sequence[Recording]) -> dict[str, str]:
    """The names of the players, by id."""
    return user_names(session, {row.user_id for row in recordings})


def open_sessions(session: Session, recordings: Sequence[Recording]) -> set[str]:
    """The ids of the play sessions of these recordings that have not ended."""
    ids = {row.session_id for row in recordings}
    statement = select(PlaySession.id).where(PlaySession.id.in_(ids), PlaySession.state != "ended")
    return set(session.scalars(statement))


def end_game(session: Session, session_id: str, at: datetime) -> None:
    """End the game that a session plays."""
    session.execute(
        update(Recording)
        .where(Recording.session_id == session_id, Recording.ended_at.is_(None))
        .values(ended_at=at)
    )


def of_session(session: Session, session_id: str) -> Sequence[Recording]:
    """The games of a session."""
    return session.scalars(select(Recording).where(Recording.session_id == session_id)).all()


def run_names(session: Session, ids: Collection[str]) -> dict[str, str]:
    """The names of runs, by id."""
    return {row[0]: row[1] for row in session.execute(select(Run.id, Run.name).where(Run.id.in_(ids)))}


def user_names(session: Session, ids: Collection[str]) -> dict[str, str]:
    """The names of users, by id."""
    return {row[0]: row[1] for row in session.execute(select(User.id, User.name).where(User.id.in_(ids)))}


def orphaned_jobs(session: Session, now: datetime) -> Sequence[Job]:
    """The jobs of videos of recordings that no longer exist, but for those that a worker runs."""
    orphans = select(Job).where(Job.kind == GAME, Job.target_id.not_in(select(Recording.id)))
    return session.scalars(orphans.where((Job.state != "running") | (Job.lease_expires_at < now))).all()


def remove(session: Session, recording_id: str) -> None:
    """Delete a recording with its parts, and the job of its video unless a worker runs it."""
    of_recording = (Job.kind == GAME, Job.target_id == recording_id)
    session.execute(delete(Job).where(*of_recording, Job.state != "running"))
    session.execute(delete(RecordingPart).where(RecordingPart.recording_id == recording_id))
    session.execute(delete(Recording).where(Recording.id == recording_id))
