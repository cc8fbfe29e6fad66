"""The job that renders the video of a recorded game."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from backend.db import Recording
from backend.db.job import GAME
from backend.fleet.jobs.kinds import Command, JobKind, Options, Output, Result, Written
from backend.platform.artifacts import ArtifactStore, game_file, states_file
from backend.replays.recordings import service
from backend.specs.play import PlaySetup


@dataclass(frozen=True)
class Game:
    """What is rendered."""

    recording_id: str
    setup: PlaySetup
    replay: bytes


def _load(session: Session, store: ArtifactStore, recording_id: str) -> Game | None:
    game = service.to_render(session, recording_id)
    return None if game is None else Game(recording_id, *game)


def _command(game: Game) -> Command:
    options: Options = {
        "--replay": Written("replay.npz", game.replay),
        "--out": Output(game_file(game.recording_id)),
        "--states": Output(states_file(game.recording_id)),
    }
    return Command("game", options, game.setup)


def _record(session: Session, recording_id: str, result: Result) -> None:
    states = result.files.get("--states")
    service.record_video(
        session,
        recording_id,
        sha256=result.files["--out"].sha256,
        states_sha256=None if states is None else states.sha256,
        n_bytes=sum(file.n_bytes for file in result.files.values()),
    )


KINDS = (JobKind(GAME, load=_load, command=_command, record=_record, rank=0, environment_of=Recording),)
