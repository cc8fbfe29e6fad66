"""What a session begins with: a moment of a recorded episode, and an agent that can act in it."""

import zlib
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError
from sqlalchemy.orm import Session

from backend.db import Checkpoint, Run
from backend.platform.artifacts import ArtifactStore, states_file
from backend.platform.errors import Invalid, NotFound
from backend.replays.episodes import service as episodes
from backend.replays.play import repository
from backend.replays.recordings import service as recordings
from backend.runs.checkpoints import service as checkpoints
from backend.runs.runs import service as runs
from backend.specs.environments import ENVIRONMENTS, Environment, EnvironmentConfig
from backend.specs.environments.atari import ROM_SHA256
from backend.specs.fields import Frozen
from backend.specs.play import Moment, agent_refusal, play_refusal
from backend.specs.problems import quoted
from backend.specs.protocols import starts_protocol
from backend.specs.recordings import Actor, Turns, first_turns, joined
from backend.specs.run import RunSpec
from backend.specs.run_fields import EXTERNAL


class Beginning(Frozen):
    """How a session's games begin, as its row stores it."""

    moment: Moment
    lives: list[int]
    """Lives left after each decision before the moment."""
    turns: Turns
    """Who made these decisions, by number among the session's actors."""

    def stored(self) -> bytes:
        """For the row."""
        return zlib.compress(self.model_dump_json().encode())

    @classmethod
    def loaded(cls, content: bytes) -> "Beginning":
        """From the row."""
        return cls.model_validate_json(zlib.decompress(content))


@dataclass(frozen=True)
class EpisodeMoment:
    """A moment of a recorded episode."""

    kind: Literal["episode", "recording"]
    id: str
    environment: Environment
    config: EnvironmentConfig
    """Settings of the environment in the episode."""
    decision: int
    """Number of decisions before the moment."""
    moment: Moment
    lives: list[int]
    actors: list[Actor]
    """Who had acted in the episode."""
    turns: Turns
    """Who made the decisions before the moment, by number in `actors`."""
    run_id: str | None = None
    """Run of the episode; None for a recording."""
    agent_steps: int | None = None
    """Agent steps at which the episode was played; None for a recording."""

    def describe(self) -> dict[str, Any]:
        """For the row of a session, and of its recordings."""
        return {"kind": self.kind, "id": self.id, "run_id": self.run_id, "decision": self.decision}

    def beginning(self, player: Actor) -> tuple[Beginning, list[Actor]]:
        """How games that go on from here begin, and the actors of these games, with `player` as the first."""
        actors = [player]
        numbers = []
        for actor in self.actors:
            if actor not in actors:
                actors.append(actor)
            numbers.append(actors.index(actor))
        turns = joined((numbers[actor], n) for actor, n in self.turns)
        return Beginning(moment=self.moment, lives=self.lives, turns=turns), actors


def of_episode(session: Session, store: ArtifactStore, episode_id: str, decision: int) -> EpisodeMoment:
    """The state of a run's episode before a decision.

    Raises:
        Invalid: there is no such episode or decision, or people cannot play its environment.
        Gone: its replay is missing or damaged.
    """
    field = "from.episode"
    try:
        episode = episodes.get(session, episode_id)
        run = runs.get(session, episode.run_id)
    except NotFound as error:
        raise Invalid.field(field, str(error)) from None
    spec = _spec(run, field)
    environment = _playable(spec.environment, field)
    game = episodes.read_game(store, episode)
    if game.protocol is not None and starts_protocol(game.protocol) is not None:
        raise Invalid.field(field, "it starts from a point of a start set, which a game here cannot do")
    config = spec.environment_config if game.protocol is None else spec.evaluation_config(game.protocol)
    _check_decision(decision, len(game.actions) - 1)
    return EpisodeMoment(
        kind="episode",
        id=episode.id,
        environment=environment,
        config=config,
        decision=decision,
        moment=Moment(
            seed=game.seed,
            actions=game.actions[:decision],
            rewards=game.rewards[:decision],
            versions=repository.packages(session, run.id, episode.attempt),
        ),
        lives=game.lives[:decision],
        actors=[Actor(kind="agent", run_id=run.id, agent_steps=episode.agent_steps)],
        turns=joined([(0, decision)]),
        run_id=run.id,
        agent_steps=episode.agent_steps,
    )


def of_recording(session: Session, recording_id: str, decision: int) -> EpisodeMoment:
    """The state of a recorded game before a decision, or after the last one if its player left.

    Raises:
        Invalid: there is no such recording or decision, it is being played, or cannot be simulated again.
        Gone: it is damaged.
    """
    field = "from.recording"
    try:
        recording = recordings.get(session, recording_id)
    except NotFound as error:
        raise Invalid.field(field, str(error)) from None
    if recording.ended_at is None:
        raise Invalid.field(field, "the game is being played: end its session first")
    environment = _playable(recording.environment, field)
    try:
        config = environment.config.model_validate(recording.environment_config)
    except ValidationError:
        raise Invalid.field(field, "it has settings of another version of Callboard") from None
    wanted = ROM_SHA256.get(environment.id)
    if recording.rom_sha256 != wanted:
        message = f"it was played with the ROM {recording.rom_sha256}, and ale-py has {wanted}"
        raise Invalid.field(field, message)
    _check_decision(decision, recording.length_steps - recording.finished)
    parts = recordings.read_parts(session, recording)
    return EpisodeMoment(
        kind="recording",
        id=recording.id,
        environment=environment,
        config=config,
        decision=decision,
        moment=Moment(
            seed=recording.seed,
            actions=[action for part in parts for action in part.actions][:decision],
            rewards=[reward for part in parts for reward in part.rewards][:decision],
            rom_sha256=recording.rom_sha256,
            versions=recording.versions,
        ),
        lives=[lives for part in parts for lives in part.lives][:decision],
        actors=recordings.actors(recording),
        turns=first_turns(recordings.turns(parts), decision),
    )


@dataclass(frozen=True)
class Agent:
    """A checkpoint that can act in a session."""

    environment: Environment
    spec: RunSpec
    checkpoint: Checkpoint

    def actor(self) -> Actor:
        """The agent as one of the actors of a session."""
        checkpoint = self.checkpoint
        return Actor(
            kind="agent",
            run_id=checkpoint.run_id,
            agent_steps=checkpoint.agent_steps,
            checkpoint_id=checkpoint.id,
        )

    def describe(self) -> dict[str, Any]:
        """For the row of a session."""
        return {"run_id": self.checkpoint.run_id, "checkpoint_id": self.checkpoint.id}

    def check(self, config: EnvironmentConfig, field: str) -> None:
        """Check that it can act in games with these settings.

        Raises:
            Invalid: it cannot.
        """
        trained, played = self.spec.environment_config.model_dump(), config.model_dump()
        refusal = agent_refusal(self.environment, trained, played)
        if refusal is not None:
            raise Invalid.field(field, refusal)


def agent_of(session: Session, run_id: str, checkpoint_id: str | None, source: EpisodeMoment | None) -> Agent:
    """The agent of a run's checkpoint.

    Args:
        session: a reading session.
        run_id: the run.
        checkpoint_id: the checkpoint; None: the one that was saved nearest to the source's episode if it is
            of this run, else the latest.
        source: where the session begins.

    Raises:
        Invalid: there is none, it is of another run, or people cannot play its environment.
    """
    try:
        run = runs.get(session, run_id)
    except NotFound as error:
        raise Invalid.field("agent.run", str(error)) from None
    spec = _spec(run, "agent.run")
    environment = _playable(spec.environment, "agent.run")
    if source is not None and source.environment.id != environment.id:
        message = f"its agent plays {environment.id}, and the session is of {source.environment.id}"
        raise Invalid.field("agent.run", message)
    if checkpoint_id is not None:
        try:
            checkpoint = checkpoints.get_stored(session, checkpoint_id)
        except NotFound as error:
            raise Invalid.field("agent.checkpoint", str(error)) from None
        if checkpoint.run_id != run.id:
            raise Invalid.field("agent.checkpoint", f"it is of run {checkpoint.run_id}")
        return Agent(environment, spec, checkpoint)
    stored = checkpoints.resumable(session, run.id)
    if not stored:
        raise Invalid.field("agent.run", "the run has no checkpoint yet")
    if source is None or source.run_id != run.id or source.agent_steps is None:
        return Agent(environment, spec, stored[0])
    played_at = source.agent_steps
    nearest = min(stored, key=lambda checkpoint: abs(checkpoint.agent_steps - played_at))
    return Agent(environment, spec, nearest)


@dataclass(frozen=True)
class StoredStates:
    """The emulator states of an episode, in the artifact store."""

    owner_id: str
    """Run of the episode, or the recording: its files are stored under this id."""
    file: str
    sha256: str


def states_of(session: Session, source: dict[str, Any]) -> StoredStates | None:
    """The emulator states of the episode that a session's row describes; None if there are none."""
    if source["kind"] == "episode":
        episode = episodes.find(session, source["id"])
        owner_id, sha256 = source["run_id"], None if episode is None else episode.states_sha256
    else:
        recording = recordings.find(session, source["id"])
        owner_id, sha256 = source["id"], None if recording is None else recording.states_sha256
    return None if sha256 is None else StoredStates(owner_id, states_file(source["id"]), sha256)


def encoded(actors: list[Actor]) -> list[dict[str, Any]]:
    """Actors for a row."""
    return [actor.model_dump(exclude_none=True) for actor in actors]


def _spec(run: Run, field: str) -> RunSpec:
    if run.origin == EXTERNAL:
        raise Invalid.field(field, "its run was trained elsewhere, and nothing of it can be played here")
    return runs.spec_of(run)


def _playable(environment_id: str, field: str) -> Environment:
    environment = ENVIRONMENTS.get(environment_id)
    if environment is None:
        raise Invalid.field(field, f"people cannot play its environment, {quoted(environment_id)}")
    if (refusal := play_refusal(environment)) is not None:
        raise Invalid.field(field, refusal)
    return environment


def _check_decision(decision: int, last: int) -> None:
    if decision > last:
        message = f"is beyond the episode: the last state to go on from is after {last} decisions"
        raise Invalid.field("from.decision", message)
