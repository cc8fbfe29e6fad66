"""Play sessions: requested by users, claimed by workers under a lease, and ended by either."""

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from pydantic import ValidationError
from sqlalchemy.orm import Session

from backend.db import Checkpoint, PlaySession
from backend.db.base import new_id, storable
from backend.db.changes import host_queue, record_work
from backend.db.checked_json import DAMAGED
from backend.db.clock import database_now
from backend.fleet.hosts import service as hosts
from backend.platform.errors import Conflict, Forbidden, Invalid, NotFound, TooMany
from backend.platform.principals import Principal, Role
from backend.replays.play import repository
from backend.replays.play.sources import Agent, Beginning, EpisodeMoment, StoredStates, encoded, states_of
from backend.replays.recordings import service as recordings
from backend.runs.checkpoints import service as checkpoints
from backend.runs.runs import service as runs
from backend.specs.environments import ENVIRONMENTS, Environment, EnvironmentConfig
from backend.specs.play import (
    HUMAN_PLAY,
    JOINT,
    SCRIPTED,
    PlayAgent,
    PlaySetup,
    play_config,
    play_refusal,
    version_refusal,
)
from backend.specs.problems import quoted
from backend.specs.recordings import Actor, GameStart, Part

MAX_OPEN = 200
MAX_OPEN_OF_USER = 20
"""Sessions that wait or are played, of all users and of one."""
QUEUED_S = 600.0
"""A session that no worker has claimed after this time ends."""
RETRY_S = 10.0
LAST_REPORT = timedelta(seconds=10)
"""How long after its end the worker of a session may report its last decisions."""
KEPT_DAYS = 7
"""Days after which an ended session is deleted; its recordings stay."""
_REMOVED_AT_ONCE = 500


def get(session: Session, session_id: str, *, for_update: bool = False) -> PlaySession:
    """The play session.

    Raises:
        NotFound: there is none of this id.
    """
    play = repository.get(session, session_id, for_update=for_update)
    if play is None:
        raise NotFound(f"play session {session_id} does not exist")
    return play


def request(
    session: Session,
    principal: Principal,
    *,
    environment: str | None,
    every_frame: bool,
    scripted: bool,
    lease_s: float,
    source: EpisodeMoment | None = None,
    agent: Agent | None = None,
) -> PlaySession:
    """Queue a session. One opened with an API token is scripted.

    Args:
        session: a writing session; not used before `source` is compressed, which may take a while.
        principal: the player.
        environment: id; None: that of `source` or `agent`.
        every_frame: whether actions are read at every frame.
        scripted: whether a script plays.
        lease_s: how long a worker counts as alive without a heartbeat.
        source: the moment of an episode at which its games begin; None: at the start of an episode.
        agent: the agent that can act in its games; None: only the player acts.

    Raises:
        Invalid: there is no such environment, or people cannot play it, or the agent cannot act in it.
        Conflict: no running worker has it.
        TooMany: too many sessions wait or are played.
    """
    known, config = _environment(environment, every_frame, source, agent)
    is_scripted = scripted or principal.credential.kind == "token"
    actors = [Actor(kind="script" if is_scripted else "person", user_id=principal.id)]
    moment = None
    if source is not None:
        beginning, actors = source.beginning(actors[0])
        moment = beginning.stored()
    if agent is not None:
        actors.append(agent.actor())
    able = [
        active.host
        for active in hosts.active_hosts(session, lease_s)
        if active.alive and known.id in active.host.environments
    ]
    if not able:
        raise Conflict(f"no running worker has {known.id}: start one, or choose another environment")
    if source is not None:
        versions = source.moment.versions
        refusals = [version_refusal(known.family, versions, host.versions) for host in able]
        if (refusal := refusals[0]) is not None and all(refusals):
            raise Invalid.field(f"from.{source.kind}", refusal)
    of_user = repository.count_open(session, principal.id)
    if of_user >= MAX_OPEN_OF_USER or repository.count_open(session) >= MAX_OPEN:
        raise TooMany("too many play sessions are open: end some, or try again later", RETRY_S)
    play = PlaySession(
        id=new_id(),
        user_id=principal.id,
        environment=known.id,
        environment_config=config.model_dump(mode="json"),
        scripted=is_scripted,
        state="queued",
        created_at=database_now(session),
        moment=moment,
        actors=encoded(actors) if source is not None or agent is not None else [],
    )
    if source is not None:
        play.source = source.describe()
    if agent is not None:
        play.agent = agent.describe()
    repository.add(session, play)
    for host in able:
        record_work(session, host_queue(host.id))
    return play


def _environment(
    environment: str | None, every_frame: bool, source: EpisodeMoment | None, agent: Agent | None
) -> tuple[Environment, EnvironmentConfig]:
    """The environment of a session, and its settings.

    Raises:
        Invalid: the parts of the request do not fit each other, or people cannot play the environment.
    """
    implied = source or agent
    if implied is not None and environment not in (None, implied.environment.id):
        message = f"is {quoted(str(environment))}, but that of the rest is {implied.environment.id}"
        raise Invalid.field("environment", message)
    if implied is not None and every_frame:
        message = "an agent's actions are read as it was trained, and an episode goes on as it was played"
        raise Invalid.field("every_frame", message)
    if source is not None:
        if agent is not None:
            agent.check(source.config, "agent.run")
        return source.environment, source.config
    if agent is not None:
        trained = agent.spec.environment_config
        return agent.environment, play_config(agent.environment, every_frame=False, trained=trained)
    if environment is None:
        raise Invalid.field("environment", "is needed, unless the session goes on from an episode")
    known = ENVIRONMENTS.get(environment)
    if known is None:
        raise Invalid.field(
            "environment", f"there is no environment {quoted(environment)} that people can play"
        )
    if (refusal := play_refusal(known)) is not None:
        raise Invalid.field("environment", refusal)
    return known, play_config(known, every_frame=every_frame)


def _suits(session: Session, play: PlaySession, versions: Mapping[str, str]) -> bool:
    """Whether a host with these versions of packages simulates what a session goes on from as it was, and
    loads its agent."""
    if play.agent is not None and not repository.can_load(session, play.agent["run_id"], versions):
        return False
    if play.moment is None or _is_damaged(play):  # which ends it, on any host
        return True
    beginning = _beginning(play)
    recorded = {} if beginning is None else beginning.moment.versions
    return version_refusal(ENVIRONMENTS[play.environment].family, recorded, versions) is None


def why_waiting(session: Session, play: PlaySession, lease_s: float) -> str | None:
    """Why no worker has claimed a queued session yet; None if it is not queued."""
    if play.state != "queued":
        return None
    running = repository.running_by_host(session)
    able = [
        active.host
        for active in hosts.active_hosts(session, lease_s)
        if active.alive
        and play.environment in active.host.environments
        and _suits(session, play, active.host.versions)
    ]
    if not able:
        of_episode = "" if play.moment is None else " with the package that has simulated the episode"
        of_agent = "" if play.agent is None else ", and the package of its agent's run if that needs one"
        return f"no running worker has {play.environment}{of_episode}{of_agent}"
    if all(host.draining for host in able):
        return "every worker that has the environment is draining"
    played = sum(running.get(host.id, 0) for host in able)
    if not played:
        return "a worker is about to start it"
    sessions = "1 session is" if played == 1 else f"{played} sessions are"
    return (
        f"{sessions} being played on the workers that have the environment; this one starts when one of them "
        "has a place (CALLBOARD_PLAY_SESSIONS)"
    )


def claim(session: Session, host: str, lease_s: float, environments: Sequence[str]) -> PlaySession | None:
    """Lease the session that waits longest to `host`; None if there is none in its environments that it can
    play: with the versions of its packages, if its games go on from an episode or have an agent."""
    row = hosts.find(session, host)
    versions = {} if row is None else row.versions
    play = next(
        (play for play in repository.queued(session, environments) if _suits(session, play, versions)), None
    )
    if play is None:
        return None
    now = database_now(session)
    play.state, play.host, play.started_at = "running", host, now
    play.lease_expires_at = now + timedelta(seconds=lease_s)
    session.flush()
    return play


@dataclass(frozen=True)
class Opened:
    """What a worker needs to play a session."""

    setup: PlaySetup
    checkpoint: Checkpoint | None
    """Of the session's agent, which `setup` names by its file; None without an agent."""
    states: StoredStates | None
    """Emulator states of the episode from which the games go on, named in `setup`; None if there are none."""


def opened(session: Session, play: PlaySession) -> Opened | None:
    """What the worker that has claimed a session needs to play it.

    Returns:
        None if the checkpoint of its agent has been removed meanwhile, or its row is damaged: the session has
        ended.
    """
    if _is_damaged(play):
        _end(session, play, DAMAGED)
        return None
    beginning = _beginning(play)
    agent, checkpoint = None, None
    if play.agent is not None:
        try:
            checkpoint = checkpoints.get_stored(session, play.agent["checkpoint_id"])
            run = runs.get(session, checkpoint.run_id)
            runs.require_readable(run)
        except (Conflict, NotFound) as error:
            _end(session, play, f"its agent cannot be loaded: {error}")
            return None
        agent = PlayAgent(spec=run.spec, checkpoint=checkpoint.file, actor=len(play.actors) - 1)
    states = None if play.source is None else states_of(session, play.source)
    moment = None if beginning is None else beginning.moment
    if moment is not None and states is not None:
        moment = moment.model_copy(update={"states": states.file})
    setup = PlaySetup(
        environment=play.environment, environment_config=play.environment_config, moment=moment, agent=agent
    )
    return Opened(setup, checkpoint, states)


def _is_damaged(play: PlaySession) -> bool:
    """Whether it is unknown who can act in the session, or what it goes on from. One with an agent or a
    source has several actors."""
    if (play.agent is not None or play.source is not None) and not play.actors:
        return True
    return play.moment is not None and _beginning(play) is None


def _beginning(play: PlaySession) -> Beginning | None:
    """How its games begin; None if they begin anew, or if what is stored cannot be read."""
    if play.moment is None:
        return None
    try:
        return Beginning.loaded(play.moment)
    except (zlib.error, ValidationError):
        return None


def renew(session: Session, host: str, ids: Collection[str], lease_s: float) -> set[str]:
    """Renew the leases of a host's sessions; return those that it still holds. The others have ended."""
    return repository.renew(session, host, ids, database_now(session) + timedelta(seconds=lease_s))


def end(session: Session, session_id: str, reason: str, *, host: str) -> str:
    """End a session that a host plays, and the recording of its game; an ended one stays as it is. Games
    without a decision are deleted.

    Args:
        session: a writing session.
        session_id: the play session.
        reason: why, for its player.
        host: the host that plays it.

    Returns:
        Why it has ended.
    """
    play = repository.get(session, session_id, for_update=True)
    if play is not None and play.host == host:
        if play.state == "running":
            _end(session, play, reason)
        recordings.remove_empty(session, session_id)
    return reason if play is None or play.end_reason is None else play.end_reason


def end_of_host(session: Session, host: str) -> None:
    """End the sessions that a host played before its worker restarted."""
    for play in repository.running_on(session, host):
        _end(session, play, _died(host))
        recordings.remove_empty(session, play.id)


def _died(host: str | None) -> str:
    return f"worker {host} has died; the game is kept up to then"


def end_by(session: Session, principal: Principal, session_id: str) -> None:
    """End a session on behalf of its player, or of an admin; an ended one stays as it is.

    Raises:
        NotFound: there is none of this id.
        Forbidden: it is of another user.
    """
    play = get(session, session_id, for_update=True)
    if play.user_id != principal.id and principal.role != Role.ADMIN:
        raise Forbidden("only its player or an admin may end a play session")
    if play.state == "ended":
        return
    host = play.host
    _end(session, play, "its player ended it" if play.user_id == principal.id else "an admin ended it")
    if host is not None:
        record_work(session, host_queue(host))


def has_expired(session: Session) -> bool:
    """Whether `expire` has something to do."""
    now = database_now(session)
    return repository.has_late(session, now, now - timedelta(seconds=QUEUED_S))


def expire(session: Session) -> list[str]:
    """End the sessions whose worker no longer renews its lease, and those that no worker has claimed."""
    now = database_now(session)
    lost = repository.expired(session, now)
    for play in lost:
        _end(session, play, _died(play.host))
        recordings.remove_empty(session, play.id)
    waiting = repository.abandoned(session, now - timedelta(seconds=QUEUED_S))
    for play in waiting:
        _end(session, play, f"no worker had a place within {QUEUED_S / 60:.0f} minutes")
    return [play.id for play in (*lost, *waiting)]


def clean_up(session: Session) -> int:
    """Delete some of the sessions that ended long ago, and the videos of deleted recordings.

    Returns:
        The number of sessions deleted; 0: none is left.
    """
    recordings.remove_orphans(session)
    before = database_now(session) - timedelta(days=KEPT_DAYS)
    return repository.remove_ended(session, before, _REMOVED_AT_ONCE)


def set_scripted(session: Session, session_id: str) -> None:
    """Record that a script has sent actions: none of the session's games counts as a person's."""
    play = get(session, session_id, for_update=True)
    if not play.scripted:
        play.scripted = True
        if not _is_damaged(play):
            play.actors = recordings.with_script(play.actors)
        recordings.set_scripted(session, session_id)


def start_game(session: Session, session_id: str, host: str, game: GameStart) -> str | None:
    """Begin the recording of a game, and return its id; None if the host no longer holds the session, or its
    row is damaged.

    A game that goes on from an episode begins with the episode's decisions.
    """
    play = repository.get(session, session_id, for_update=True)
    if play is None or play.state != "running" or play.host != host:
        return None
    if _is_damaged(play):  # nobody knows whether the game is one of a person alone
        _end(session, play, DAMAGED)
        return None
    recording = recordings.start(
        session,
        session_id=session_id,
        user_id=play.user_id,
        environment=play.environment,
        environment_config=play.environment_config,
        protocol=JOINT if play.actors else SCRIPTED if play.scripted else HUMAN_PLAY,
        game=game,
        actors=play.actors,
        source=play.source,
    )
    if (beginning := _beginning(play)) is not None:
        before = Part(
            first_step=0,
            actions=beginning.moment.actions,
            rewards=beginning.moment.rewards,
            lives=beginning.lives,
            n_frames=game.restored_frames,
            inputs=[],
            turns=beginning.turns,
        )
        recordings.append(session, recording.id, before)
    return recording.id


def record(session: Session, session_id: str, host: str, recording_id: str, part: Part) -> bool:
    """Append decisions to a game; False if the host no longer holds the session, or they do not follow.

    The last ones of a session come just after its player has ended it.
    """
    play = repository.get(session, session_id, for_update=True)
    if play is None or play.host != host:
        return False
    if play.ended_at is not None and database_now(session) - play.ended_at > LAST_REPORT:
        return False
    return recordings.append(session, recording_id, part, session_ended_at=play.ended_at)


def _end(session: Session, play: PlaySession, reason: str) -> None:
    now = database_now(session)
    play.state, play.end_reason, play.ended_at = "ended", storable(reason), now
    play.lease_expires_at = play.moment = None
    recordings.end_game(session, play.id, now)
    session.flush()
