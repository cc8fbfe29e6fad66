"""Start sets: created from recorded games, imported, exported and deleted.

Every set is verified by a worker before an agent can start from it. A set keeps its own copy of seeds and
actions: deleting the games' runs or recordings leaves it as it is.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import ValidationError
from sqlalchemy.orm import Session

from backend.db import Episode, Recording, StartSet
from backend.db.base import new_id
from backend.db.clock import database_now
from backend.db.job import VERIFICATION
from backend.fleet.jobs import service as jobs
from backend.platform.artifacts import ArtifactStore
from backend.platform.errors import Conflict, Gone, Invalid, NotFound
from backend.replays.episodes import service as episodes
from backend.replays.recordings import repository as recording_rows
from backend.replays.recordings import service as recordings
from backend.runs.runs import external
from backend.runs.runs import service as runs
from backend.runs.starts import repository
from backend.runs.starts import service as starts
from backend.specs.environments.atari import ROM_MD5, AtariConfig
from backend.specs.play import HUMAN_PLAY, JOINT, PRACTICE, SCRIPTED
from backend.specs.problems import problems_of, quoted
from backend.specs.protocols import MAX_FRAMES, starts_protocol
from backend.specs.start_sets import (
    LEAD_FRAMES,
    MAX_GAMES,
    OF_PEOPLE,
    Players,
    RecordedGame,
    Source,
    StartPoint,
    StartSetContent,
    StartSetFile,
)

WOKEN_QUEUE = "cpu"
"""Its workers are woken for a new set; any worker that has the game may verify it."""
_PROTOCOLS: dict[Players, str] = {"people": HUMAN_PLAY, "scripts": SCRIPTED}
_MAX_START_FRAMES = 255
"""No-ops and FIRE before a game's first decision, at most."""


@dataclass(frozen=True)
class Game:
    """A recorded game: from an agent's episode, or from a person's recording."""

    seed: int
    config: AtariConfig
    actions: Sequence[int]
    rewards: Sequence[float]
    player: str | None = None
    """Id of the person who played it; None: an agent or a script did."""


@dataclass(frozen=True)
class PlayedGames:
    """Recordings of one environment that can be in a set."""

    environment: str
    players: Players
    n_recordings: int


@dataclass(frozen=True)
class RecordedGames:
    """Recorded games of one environment, from which a set is sampled."""

    environment: str
    source: Source
    games: Sequence[Game]
    origin: str
    """Where they come from, in words."""
    field: str
    """The field of the request that names them."""


def get(session: Session, set_id: str, *, with_content: bool = False) -> StartSet:
    """The set.

    Raises:
        NotFound: there is none, or it has been deleted.
    """
    row = repository.get(session, set_id, with_content=with_content)
    if row is None or row.state == "deleted":
        raise NotFound(f"start set {set_id} does not exist")
    return row


def games_of_run(session: Session, store: ArtifactStore, run_id: str, kind: str | None) -> RecordedGames:
    """The games of a run's latest recorded episodes.

    Raises:
        Invalid: the run has none, or they cannot be used.
        Conflict: the run is external.
        NotFound: there is no such run.
    """
    run = runs.get(session, run_id)
    rows = episodes.latest(session, run_id, kind, MAX_GAMES)
    if not rows:
        raise Invalid.field("run", "the run has no recorded episodes" + (f" of {kind}s" if kind else ""))
    environment, games = _games(session, store, rows, "run")
    return RecordedGames(environment, "agent", games, f"{len(rows)} episodes of run {run.name}"[:200], "run")


def games_of_episodes(session: Session, store: ArtifactStore, episode_ids: Sequence[str]) -> RecordedGames:
    """The games of these episodes.

    Raises:
        Invalid: an episode does not exist or cannot be used, or they are of several games.
    """
    rows: list[Episode] = []
    for number, episode_id in enumerate(dict.fromkeys(episode_ids)):
        try:
            rows.append(episodes.get(session, episode_id))
        except NotFound as error:
            raise Invalid.field(f"episodes.{number}", str(error)) from None
    environment, games = _games(session, store, rows, "episodes")
    n_runs = len({row.run_id for row in rows})
    origin = f"{len(rows)} episodes of {n_runs} run{'s' * (n_runs > 1)}"
    return RecordedGames(environment, "agent", games, origin, "episodes")


def sources(session: Session) -> list[PlayedGames]:
    """The Atari games that people or scripts have played here, and how many recordings can be in a set.

    Recordings of open sessions are left out, and those without a state to start from.
    """
    protocols = {protocol: players for players, protocol in _PROTOCOLS.items()}
    counts = recording_rows.count_closed(session, protocols=protocols, above_frames=LEAD_FRAMES)
    return [
        PlayedGames(environment, protocols[protocol], n)
        for environment, protocol, n in counts
        if environment in ROM_MD5
    ]


def games_of_environment(session: Session, environment: str, players: Players) -> RecordedGames:
    """The games of the latest recordings of people or of scripts in an environment.

    Damaged recordings and those of open sessions are left out.

    Raises:
        Invalid: there are none, or the environment is no Atari game.
        Gone: all recordings are damaged.
    """
    if environment not in ROM_MD5:
        message = f"start sets are of Atari games, and there is none called {quoted(environment)}"
        raise Invalid.field("environment", message)
    rows = recording_rows.latest_closed(session, environment, _PROTOCOLS[players], MAX_GAMES)
    if not rows:
        nobody = f"no script has played {environment} here"
        if players == "people":
            nobody = f"nobody has played {environment} here at the console's speed"
        message = (
            f"{nobody}, or only in a session that is still open: play it, end the session, or give a run"
        )
        raise Invalid.field("environment", message)
    return _games_of_recordings(session, rows, ["environment"] * len(rows), skips_damaged=True)


def games_of_recordings(session: Session, recording_ids: Sequence[str]) -> RecordedGames:
    """The games of these recordings: all of people, or all of scripts.

    Raises:
        Invalid: a recording does not exist or cannot be used, or they are of several games, or only some are
            of scripts.
        Gone: a recording is damaged.
    """
    rows: list[Recording] = []
    fields: list[str] = []
    for number, recording_id in enumerate(dict.fromkeys(recording_ids)):
        fields.append(f"recordings.{number}")
        try:
            row = recordings.get(session, recording_id)
        except NotFound as error:
            raise Invalid.field(fields[-1], str(error)) from None
        if recordings.in_open_sessions(session, [row]):
            raise Invalid.field(fields[-1], "its play session is open: end it first")
        if row.protocol == JOINT:
            message = "it is a joint game of a person and agents, which no start set has"
            raise Invalid.field(fields[-1], message)
        if row.protocol == PRACTICE:
            message = "it is a game of practice, at another speed than the console's, which no start set has"
            raise Invalid.field(fields[-1], message)
        if row.environment not in ROM_MD5:
            message = f"start sets are of Atari games, and this recording is of {row.environment}"
            raise Invalid.field(fields[-1], message)
        if rows and row.environment != rows[0].environment:
            message = f"is of {row.environment}, and the first recording of {rows[0].environment}"
            raise Invalid.field(fields[-1], message)
        if rows and row.protocol != rows[0].protocol:
            message = "games of scripts and games of people are never in one set"
            raise Invalid.field(fields[-1], message)
        rows.append(row)
    return _games_of_recordings(session, rows, fields)


def _games_of_recordings(
    session: Session, rows: Sequence[Recording], fields: Sequence[str], *, skips_damaged: bool = False
) -> RecordedGames:
    """The games of recordings of one Atari game, all of people or all of scripts."""
    is_human = rows[0].protocol == HUMAN_PLAY
    games = []
    damaged: Gone | None = None
    for field, row in zip(fields, rows, strict=True):
        try:
            config = AtariConfig.model_validate(row.environment_config)
        except ValidationError:
            message = f"recording {row.id} has settings of another version of Callboard"
            raise Invalid.field(field, message) from None
        if refusal := _refusal(config):
            raise Invalid.field(field, f"recording {row.id}: {refusal}")
        try:
            parts = recordings.read_parts(session, row)
        except Gone as error:
            if not skips_damaged:
                raise
            damaged = error
            continue
        games.append(
            Game(
                row.seed,
                config,
                [action for part in parts for action in part.actions],
                [reward for part in parts for reward in part.rewards],
                player=row.user_id if is_human else None,
            )
        )
    if damaged is not None and not games:
        raise damaged
    of = "people" if is_human else "scripts"
    n = sum(1 for game in games if _states(game))
    origin = f"{n} recording{'s' * (n != 1)} of {of}"
    source: Source = "human" if is_human else "scripted"
    return RecordedGames(rows[0].environment, source, games, origin, fields[0].partition(".")[0])


def _games(
    session: Session, store: ArtifactStore, rows: Sequence[Episode], field: str
) -> tuple[str, list[Game]]:
    specs = {
        run_id: external.trainable_spec(runs.get(session, run_id), "evaluate")
        for run_id in dict.fromkeys(row.run_id for row in rows)
    }
    environments = sorted({spec.environment for spec in specs.values()})
    if len(environments) > 1:
        raise Invalid.field(field, f"the episodes are of several games: {', '.join(environments)}")
    if environments[0] not in ROM_MD5:
        raise Invalid.field(field, f"start sets are of Atari games, and these are of {environments[0]}")
    games = []
    for row in rows:
        replay = episodes.read_game(store, row)
        spec = specs[row.run_id]
        if replay.protocol is not None and starts_protocol(replay.protocol) is not None:
            raise Invalid.field(field, f"episode {row.id} itself starts from a start set")
        config = (
            spec.environment_config if replay.protocol is None else spec.evaluation_config(replay.protocol)
        )
        assert isinstance(config, AtariConfig)
        if refusal := _refusal(config):
            raise Invalid.field(field, f"episode {row.id}: {refusal}")
        games.append(Game(replay.seed, config, replay.actions, replay.rewards))
    return environments[0], games


def _refusal(config: AtariConfig) -> str | None:
    """Why games with these settings cannot be in a set; None if they can."""
    if config.sticky_actions:
        return "with sticky actions the emulator does not play the recorded actions"
    return None


def sample(recorded: RecordedGames, n_points: int, seed: int) -> StartSetContent:
    """Draw points at random from all states of the games (Nair et al. 2015, section 5.2).

    A state is one before a decision; those of a game's first frames, which fill no stack of observations, and
    those beyond the limit of an evaluation are left out. So are games without a point.

    Raises:
        Invalid: there are too few states, or the games are of several modes.
    """
    games = recorded.games
    if len({(game.config.mode, game.config.difficulty) for game in games}) > 1:
        raise Invalid.field(recorded.field, "the games are of several modes or difficulties")
    candidates = np.array(
        [(number, decision) for number, game in enumerate(games) for decision in _states(game)], np.int64
    ).reshape(-1, 2)
    if len(candidates) < n_points:
        raise Invalid.field("points", f"the games have {len(candidates)} states to start from")
    drawn = np.random.default_rng(seed).choice(candidates, n_points, replace=False)
    last = {int(number): 0 for number in np.unique(drawn[:, 0])}
    for number, decision in drawn.tolist():
        last[number] = max(last[number], decision)
    new_number = {number: new for new, number in enumerate(last)}
    return StartSetContent(
        environment=recorded.environment,
        source=recorded.source,
        n_people=len({games[number].player for number in last} - {None}),
        games=[
            RecordedGame(
                seed=games[number].seed,
                environment_config=games[number].config.model_dump(mode="json"),
                actions=RecordedGame.encoded(games[number].actions[:end]),
            )
            for number, end in last.items()
        ],
        points=[
            StartPoint(
                game=new_number[number],
                decision=decision,
                score=float(np.sum(games[number].rewards[:decision], dtype=np.float64)),
            )
            for number, decision in drawn.tolist()
        ],
    )


def _states(game: Game) -> range:
    """The decisions before which a game has a state to start from."""
    skip = game.config.frame_skip
    limit = (MAX_FRAMES - _MAX_START_FRAMES) // skip
    return range(-(-LEAD_FRAMES // skip), min(len(game.actions), limit))


def checked(file: StartSetFile) -> StartSetContent:
    """The content of a file to import, as far as it can be checked without the emulator.

    Nothing shows who has played the games of a file: people's games are marked as imported.

    Raises:
        Invalid: it was changed, or is not of an Atari game as ale-py has it, or states impossible things.
    """
    content = file.content
    if content.checksum() != file.sha256:
        raise Invalid.field(
            "file.sha256", "the content is not the one that was exported: its SHA-256 differs"
        )
    if content.environment not in ROM_MD5:
        message = f"is not an Atari game: {quoted(content.environment)}"
        raise Invalid.field("file.content.environment", message)
    if content.rom_md5 not in (None, ROM_MD5[content.environment]):
        message = (
            f"the set is of another ROM of {content.environment} than ale-py's, whose MD5 is "
            f"{ROM_MD5[content.environment]}"
        )
        raise Invalid.field("file.content.rom_md5", message)
    if (content.source in OF_PEOPLE) != (content.n_people > 0):
        raise Invalid.field("file.content.n_people", "sets of people's games, and no others, have people")
    if content.n_people > len(content.games):
        message = f"is more than the {len(content.games)} games, each of which one person plays"
        raise Invalid.field("file.content.n_people", message)
    modes = set()
    for number, game in enumerate(content.games):
        field = f"file.content.games.{number}.environment_config"
        try:
            config = AtariConfig.model_validate(game.environment_config)
        except ValidationError as error:
            raise Invalid(problems_of(error, field)) from None
        if refusal := _refusal(config):
            raise Invalid.field(field, refusal)
        modes.add((config.mode, config.difficulty))
        if len(modes) > 1:
            raise Invalid.field(field, "the games are of several modes or difficulties")
    return content.model_copy(update={"source": "human_imported"}) if content.n_people else content


def create(
    session: Session, name: str, content: StartSetContent, *, origin: str, created_by: str | None
) -> StartSet:
    """Store a new version of a set, and queue the job that verifies it."""
    row = StartSet(
        id=new_id(),
        created_at=database_now(session),
        created_by=created_by,
        name=name,
        version=repository.next_version(session, name),
        origin=origin,
        state="verifying",
    )
    starts.store_content(row, content)
    repository.add(session, row)
    jobs.request(session, VERIFICATION, None, row.id, queue=WOKEN_QUEUE, requested_by=created_by)
    return row


def export(row: StartSet) -> StartSetFile:
    """The file of a verified set.

    Raises:
        Conflict: it is not verified.
    """
    if row.state != "ready" or row.document is None:
        raise Conflict("only a verified set can be exported")
    content = StartSetContent.model_validate(json.loads(zlib.decompress(row.document)))
    return StartSetFile(name=row.name, version=row.version, sha256=content.checksum(), content=content)


def delete(session: Session, set_id: str) -> None:
    """Delete a set's content. Its name and version are never given to another.

    Raises:
        NotFound: there is no such set.
        Conflict: a run that has not ended is evaluated from it.
    """
    get(session, set_id)
    row = repository.get(session, set_id, for_update=True, with_content=True)
    assert row is not None
    used_by = repository.open_run(session, row.environment, starts.protocols_of(row))
    if used_by is not None:
        raise Conflict(f"run {used_by} is evaluated from it: stop the run first, or wait for its end")
    row.state, row.document, row.states, row.error = "deleted", None, None, None
