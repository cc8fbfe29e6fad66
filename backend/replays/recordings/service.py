"""Recordings of games that people or scripts have played: seed, actions, and when keys were pressed.

The video of a recording is rendered on the first request. It is stored like a file of a run whose id is the
recording's.
"""

import hashlib
import io
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from pydantic import ValidationError
from sqlalchemy.orm import Session

from backend.db import Job, Recording, RecordingPart
from backend.db.base import new_id
from backend.db.clock import database_now
from backend.db.job import GAME
from backend.fleet.jobs import repository as job_rows
from backend.fleet.jobs import service as jobs
from backend.fleet.storage import service as storage
from backend.platform.artifacts import ArtifactStore, Damaged, game_file
from backend.platform.errors import Conflict, Forbidden, Gone, NotFound, TooMany
from backend.platform.principals import Principal, Role
from backend.replays.recordings import repository
from backend.specs.environments import ENVIRONMENTS
from backend.specs.play import HUMAN_PLAY, JOINT, PRACTICE, SCRIPTED, PlaySetup, play_config
from backend.specs.recordings import Actor, GameStart, Part, Turns, joined

MAX_WAITING_VIDEOS = 200
MAX_WAITING_VIDEOS_OF_USER = 30
"""Videos of recordings that wait to be rendered or are, of all users and of one."""
RETRY_S = 10.0
MIN_GAMES = 5
"""Minimum number of finished games whose mean can be a reference."""
WOKEN_QUEUE = "cpu"
"""Queue whose workers are woken for a video; every worker that has the environment may render it."""


def find(session: Session, recording_id: str) -> Recording | None:
    """The recording, or None."""
    return repository.get(session, recording_id)


def get(session: Session, recording_id: str) -> Recording:
    """The recording.

    Raises:
        NotFound: there is none of this id.
    """
    recording = repository.get(session, recording_id)
    if recording is None:
        raise NotFound(f"recording {recording_id} does not exist")
    return recording


def in_open_sessions(session: Session, recordings: Sequence[Recording]) -> set[str]:
    """The ids of those recordings whose session has not ended: until then a script may join it, which makes
    all of its games scripted."""
    sessions = repository.open_sessions(session, recordings)
    return {row.id for row in recordings if row.ended_at is None or row.session_id in sessions}


@dataclass(frozen=True)
class PersonsMean:
    """A person's mean over their games in an environment."""

    environment: str
    user_id: str
    player: str
    mean_return: float
    n_games: int
    n_frames: int
    """Emulator frames of these games."""


def human_references(session: Session, environment: str | None = None) -> dict[str, PersonsMean]:
    """A *human* reference for each environment without a published one, from games of this installation.

    Each is the highest of the means of people who have finished at least `MIN_GAMES` games with the settings
    that play has by default. Games of scripts, and joint ones, are no person's.
    """
    best: dict[str, PersonsMean] = {}
    if environment is not None and not _lacks_human(environment):
        return best
    for games in repository.games_of_people(session, environment):
        if games.n_games < MIN_GAMES or not _lacks_human(games.environment):
            continue
        own = play_config(ENVIRONMENTS[games.environment], every_frame=False)
        if json.loads(games.environment_config) != own.model_dump(mode="json"):
            continue
        mean = PersonsMean(
            games.environment,
            games.user_id,
            games.player,
            float(games.mean_return),
            games.n_games,
            int(games.n_frames),
        )
        other = best.get(mean.environment)
        if other is None or (mean.mean_return, mean.user_id) > (other.mean_return, other.user_id):
            best[mean.environment] = mean
    return best


def _lacks_human(environment: str) -> bool:
    """Whether an environment that people can play has no published human score."""
    known = ENVIRONMENTS.get(environment)
    return known is not None and all(score.label != "human" for score in known.published)


def from_decision(session: Session, episode_id: str, decision: int, limit: int) -> Sequence[Recording]:
    """The latest ended recordings of games that went on from an episode's decision."""
    return repository.from_decision(session, episode_id, decision, limit)


def start(
    session: Session,
    *,
    session_id: str,
    user_id: str,
    environment: str,
    environment_config: dict[str, object],
    protocol: str,
    game: GameStart,
    actors: Sequence[dict[str, Any]] = (),
    source: dict[str, Any] | None = None,
) -> Recording:
    """Begin the recording of a game."""
    recording = Recording(
        id=new_id(),
        session_id=session_id,
        user_id=user_id,
        environment=environment,
        environment_config=environment_config,
        protocol=protocol,
        started_at=database_now(session),
        ended_at=None,
        finished=False,
        episode_return=0.0,
        length_steps=0,
        length_frames=0,
        actors=list(actors),
        source=source,
        **game.model_dump(exclude={"restored_frames"}),
    )
    repository.add(session, recording)
    return recording


def append(
    session: Session, recording_id: str, part: Part, *, session_ended_at: datetime | None = None
) -> bool:
    """Append the next decisions of a game; if they end it, the recording ends. A recording that ends without
    a decision is deleted. A person's game at another speed than the console's becomes one of practice.

    Args:
        session: a writing session.
        recording_id: the recording.
        part: the decisions.
        session_ended_at: when the play session has ended: a recording that ended with it takes its last
            decisions.

    Returns:
        False if the part neither follows the latest one nor is it, sent again after a lost answer; nothing is
        changed.
    """
    recording = repository.get(session, recording_id, for_update=True)
    if recording is None:
        return False
    content = zlib.compress(part.model_dump_json().encode())
    if part.actions and part.first_step + len(part.actions) == recording.length_steps:
        stored = repository.part(session, recording_id, part.first_step)
        return stored is not None and stored.sha256 == hashlib.sha256(content).hexdigest()
    if part.first_step != recording.length_steps:
        return False
    if recording.ended_at not in (None, session_ended_at):
        return not part.actions and part.finished == recording.finished and (part.finished or part.left)
    if part.actions or part.inputs:
        repository.add_part(
            session,
            RecordingPart(
                recording_id=recording_id,
                first_step=part.first_step,
                content=content,
                sha256=hashlib.sha256(content).hexdigest(),
            ),
        )
    recording.length_steps += len(part.actions)
    recording.length_frames += part.n_frames
    recording.episode_return += sum(part.rewards)
    if part.speeds and recording.protocol == HUMAN_PLAY:
        recording.protocol = PRACTICE
    if part.finished or part.left:
        recording.finished = part.finished
        recording.ended_at = recording.ended_at or database_now(session)
        if _is_empty(recording):
            repository.remove(session, recording.id)
    return True


def remove_empty(session: Session, session_id: str) -> None:
    """Delete the games of an ended session in which nobody has made a decision."""
    for recording in repository.of_session(session, session_id):
        if recording.ended_at is not None and _is_empty(recording):
            repository.remove(session, recording.id)


def _is_empty(recording: Recording) -> bool:
    """Whether a game has no decisions, but for those of the episode from which it goes on."""
    before = 0 if recording.source is None else int(recording.source["decision"])
    return recording.length_steps <= before and not recording.finished


def set_scripted(session: Session, session_id: str) -> None:
    """Record that a script may have played the games of a session: a joint one stays joint, with a script in
    place of its player."""
    for recording in repository.of_session(session, session_id):
        if recording.protocol == JOINT:
            if recording.actors:  # else the row is damaged
                recording.actors = with_script(recording.actors)
        else:
            recording.protocol = SCRIPTED


def with_script(actors: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Actors with a script in place of the player, who is the first."""
    return [{**actor, "kind": "script"} if number == 0 else actor for number, actor in enumerate(actors)]


def actors(recording: Recording) -> list[Actor]:
    """Who has acted in a game: its player, and in a joint one others.

    Raises:
        Gone: it is a joint one, and its row is damaged.
    """
    if recording.actors:
        return [Actor.model_validate(actor) for actor in recording.actors]
    if recording.protocol == JOINT:
        raise Gone(f"recording {recording.id} is damaged: it does not say who has acted")
    return [Actor(kind="script" if recording.protocol == SCRIPTED else "person", user_id=recording.user_id)]


def in_words(session: Session, recording: Recording, acted: Turns) -> str:
    """Who made some decisions of a recording, such as `ada` or `ada and an agent`.

    Raises:
        Gone: its row is damaged: it does not say who has acted.
    """
    known = actors(recording)
    names = repository.user_names(session, {actor.user_id for actor in known if actor.user_id})
    numbers = dict.fromkeys(number for number, _ in acted)
    if max(numbers, default=0) >= len(known):
        raise _damaged(recording)
    words = [_actor_in_words(known[number], names) for number in numbers]
    return " and ".join(dict.fromkeys(words))


def _actor_in_words(actor: Actor, names: Mapping[str, str]) -> str:
    if actor.kind == "agent":
        return "an agent"
    name = names.get(actor.user_id or "", "a deleted user")
    return f"a script of {name}" if actor.kind == "script" else name


def turns(parts: Sequence[Part]) -> Turns:
    """Who made the decisions of a recording, one turn after the other."""
    return joined(turn for part in parts for turn in part.turns or [(0, len(part.actions))])


def end_game(session: Session, session_id: str, at: datetime) -> None:
    """End the game that a session plays, complete up to its latest part."""
    repository.end_game(session, session_id, at)


def read_parts(session: Session, recording: Recording) -> list[Part]:
    """All decisions of a recording.

    Raises:
        Gone: a stored part is damaged or missing.
    """
    parts: list[Part] = []
    n_steps = 0
    for row in repository.parts(session, recording.id):
        if hashlib.sha256(row.content).hexdigest() != row.sha256 or row.first_step != n_steps:
            raise _damaged(recording)
        try:
            part = Part.model_validate_json(zlib.decompress(row.content))
        except (zlib.error, ValidationError):
            raise _damaged(recording) from None
        parts.append(part)
        n_steps += len(part.actions)
    if n_steps != recording.length_steps:
        raise _damaged(recording)
    return parts


def replay_file(recording: Recording, parts: Sequence[Part]) -> bytes:
    """The recording as an .npz file, from which alone the game is simulated again: an agent's replay, the
    settings of the environment, the versions of the packages, and the times of the keys.

    `environment_config` and `versions` are JSON objects. `inputs` has a row for each change of the held
    action: emulator frame of the game, milliseconds since its start, index of the action (-1: nothing).
    `turns` has a row for each stretch of decisions by one actor: its number in `actors`, a JSON list, and how
    many decisions there are. `speeds` has a row for each change of the speed: emulator frame, multiple of the
    console's.
    """
    actions = [action for part in parts for action in part.actions]
    inputs = [change for part in parts for change in part.inputs]
    file = io.BytesIO()
    np.savez_compressed(
        file,
        actions=np.asarray(actions, np.int16),
        rewards=np.asarray([reward for part in parts for reward in part.rewards], np.float32),
        lives=np.asarray([lives for part in parts for lives in part.lives], np.int8),
        inputs=np.asarray(inputs, np.int64).reshape(-1, 3),
        seed=np.int64(recording.seed),
        protocol=np.str_(""),
        frames_per_step=np.int64(recording.frames_per_step),
        action_names=np.asarray(recording.action_names),
        environment=np.str_(recording.environment),
        environment_config=np.str_(json.dumps(recording.environment_config)),
        versions=np.str_(json.dumps(recording.versions)),
        rom_sha256=np.str_(recording.rom_sha256 or ""),
        played_as=np.str_(recording.protocol),
        turns=np.asarray(turns(parts), np.int64).reshape(-1, 2),
        speeds=np.asarray([change for part in parts for change in part.speeds], np.float64).reshape(-1, 2),
        actors=np.str_(json.dumps([actor.model_dump(exclude_none=True) for actor in actors(recording)])),
    )
    return file.getvalue()


def delete(session: Session, principal: Principal, recording_id: str) -> None:
    """Delete a recording: its player may, and admins.

    Raises:
        NotFound: there is none of this id.
        Forbidden: another user has played it.
        Conflict: it is being played.
    """
    recording = get(session, recording_id)
    if recording.user_id != principal.id and principal.role != Role.ADMIN:
        raise Forbidden("only its player or an admin may delete a recording")
    if recording.ended_at is None:
        raise Conflict("the game is being played: end the session first")
    repository.remove(session, recording_id)
    storage.release_all_files(session, recording_id)


def request_video(
    session: Session, recording: Recording, *, again: bool, requested_by: str | None = None
) -> Job:
    """Queue a job that renders the video of a recording, or renders it again.

    Raises:
        NotFound: the recording has been deleted.
        Conflict: it is being played or has no decisions, or rendering has failed and `again` is not set.
        Gone: it is damaged.
        TooMany: too many videos wait to be rendered, of all users or of this one.
    """
    recording = get(session, recording.id)
    if recording.ended_at is None:
        raise Conflict("the game is being played: it can be replayed when it has ended")
    if not recording.length_steps:
        raise Conflict("the game has ended before its first decision: there is nothing to replay")
    read_parts(session, recording)  # raises Gone
    waiting = job_rows.count_waiting(session, GAME)
    if (
        sum(waiting.values()) >= MAX_WAITING_VIDEOS
        or waiting.get(requested_by, 0) >= MAX_WAITING_VIDEOS_OF_USER
    ):
        raise TooMany("too many videos are queued for rendering: try again later", RETRY_S)
    job = job_rows.find(session, GAME, recording.id)
    if job is not None and job.state == "failed" and not again:
        raise Conflict(f"rendering the video failed: {jobs.reason_of(job)}; retry with again=true")
    recording.video_sha256 = recording.video_bytes = recording.states_sha256 = None
    return jobs.request(session, GAME, None, recording.id, queue=WOKEN_QUEUE, requested_by=requested_by)


def has_video(store: ArtifactStore, recording: Recording, *, again: bool) -> bool:
    """Whether the video of a recording is rendered and stored.

    Args:
        store: the store of artifacts.
        recording: the recording.
        again: whether a damaged one is to be rendered again, and so counts as missing.

    Raises:
        Gone: it is damaged.
    """
    if recording.video_sha256 is None:
        return False
    try:
        store.check(recording.id, "videos", game_file(recording.id), recording.video_sha256)
    except FileNotFoundError:
        return False
    except Damaged:
        if again:
            return False
        detail = f"the video of recording {recording.id} is damaged; render it again with again=true"
        raise Gone(detail) from None
    return True


def to_render(session: Session, recording_id: str) -> tuple[PlaySetup, bytes] | None:
    """The environment of a recording, and its .npz file; None if it has been deleted.

    Raises:
        Gone: it is damaged.
    """
    recording = repository.get(session, recording_id)
    if recording is None:
        return None
    setup = PlaySetup(environment=recording.environment, environment_config=recording.environment_config)
    return setup, replay_file(recording, read_parts(session, recording))


def record_video(
    session: Session, recording_id: str, *, sha256: str, n_bytes: int, states_sha256: str | None = None
) -> None:
    """Record the rendered video of a recording; that of one that has been deleted meanwhile is removed."""
    recording = repository.get(session, recording_id)
    if recording is None:
        storage.release_all_files(session, recording_id)
    else:
        recording.video_sha256, recording.video_bytes = sha256, n_bytes
        recording.states_sha256 = states_sha256


def remove_orphans(session: Session) -> int:
    """Remove the videos of recordings that were deleted with their player; return their number."""
    orphans = repository.orphaned_jobs(session, database_now(session))
    for job in orphans:
        storage.release_all_files(session, job.target_id)
        session.delete(job)
    return len(orphans)


def _damaged(recording: Recording) -> Gone:
    return Gone(f"recording {recording.id} is damaged: its content does not match its checksums")
