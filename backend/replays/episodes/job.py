"""The jobs that render an episode's video and thumbnail, and what all jobs need that repeat an episode."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy.orm import Session

from backend.db import Branch, Episode, Run, StoredSaliency
from backend.db.job import THUMBNAIL, VIDEO
from backend.fleet.jobs.kinds import (
    Command,
    JobFailed,
    JobKind,
    Options,
    Output,
    Result,
    Stored,
    TargetDeleted,
    Written,
)
from backend.platform.artifacts import ArtifactStore, observations_file, states_file, thumbnail_file
from backend.replays.episodes import service
from backend.runs.checkpoints import service as checkpoints
from backend.runs.runs import service as runs
from backend.runs.starts import service as starts
from backend.specs.run import parse_run_spec

Row = TypeVar("Row", bound=Branch | StoredSaliency)


@dataclass(frozen=True)
class RepeatedEpisode:
    """What repeats an episode."""

    episode: Episode
    run: Run
    starts: dict[str, Written]

    def options(self) -> Options:
        """The engine's options for its replay and its start."""
        title = f"the replay {self.episode.replay}"
        replay = Stored(
            self.run.id, "replays", self.episode.replay, self.episode.replay_sha256, title, unless="--video"
        )
        return {"--replay": replay, **self.starts}


@dataclass(frozen=True)
class PolicyJob(Generic[Row]):
    """An agent, which may be of another run, that acts in an episode, for a branch or a saliency map."""

    row: Row
    repeated: RepeatedEpisode
    policy_run: Run
    checkpoint: Stored

    def command(self, subcommand: str, options: Options) -> Command:
        """The engine's command, with these options in addition to those of the episode and the agent."""
        episode = self.repeated.episode
        policy = parse_run_spec(self.policy_run.spec).model_dump_json(indent=2)
        options = {
            **self.repeated.options(),
            "--policy": Written("policy.json", policy.encode()),
            "--checkpoint": self.checkpoint,
            **options,
        }
        if (sha256 := episode.states_sha256) is not None:  # they only save time
            options["--states"] = Stored(episode.run_id, "videos", states_file(episode.id), sha256)
        return Command(subcommand, options, parse_run_spec(self.repeated.run.spec))


def load_policy_job(session: Session, store: ArtifactStore, row: Row | None) -> PolicyJob[Row] | None:
    """What the job of a branch or a saliency map needs; None if its row, episode or run has been deleted.

    Raises:
        JobFailed: the agent, or the start set of the episode, has been deleted.
        FileLost: the checkpoint has been deleted.
    """
    repeated = None if row is None else _load_episode(session, store, row.episode_id)
    if row is None or repeated is None:
        return None
    policy_run = runs.find(session, row.policy_run_id)
    if policy_run is None:
        raise JobFailed("the run of its checkpoint has been deleted")
    checkpoint = checkpoints.stored_file(session, policy_run.id, row.checkpoint)
    return PolicyJob(row, repeated, policy_run, checkpoint)


def _load_episode(session: Session, store: ArtifactStore, episode_id: str) -> RepeatedEpisode | None:
    episode = service.find(session, episode_id)
    run = None if episode is None else runs.find(session, episode.run_id)
    if episode is None or run is None:
        return None
    protocol = service.protocol_of(store, episode)
    return RepeatedEpisode(episode, run, starts.engine_options(session, protocol or ""))


def _load(session: Session, store: ArtifactStore, episode_id: str) -> RepeatedEpisode:
    repeated = _load_episode(session, store, episode_id)
    if repeated is None:
        raise TargetDeleted
    return repeated


def _video_command(repeated: RepeatedEpisode) -> Command:
    id = repeated.episode.id
    options: Options = repeated.options() | {
        "--out": Output(f"{id}.mp4"),
        "--observed": Output(observations_file(id)),
        "--states": Output(states_file(id)),
    }
    return Command("video", options, parse_run_spec(repeated.run.spec))


def _record_video(session: Session, episode_id: str, result: Result) -> None:
    sha256 = {option: file.sha256 for option, file in result.files.items()}
    service.record_video(
        session,
        episode_id,
        file=f"{episode_id}.mp4",
        sha256=sha256.get("--out"),
        observations_sha256=sha256.get("--observed"),
        states_sha256=sha256.get("--states"),
        n_bytes=sum(file.n_bytes for file in result.files.values()),
    )


def _thumbnail_command(repeated: RepeatedEpisode) -> Command:
    episode = repeated.episode
    options: Options = repeated.options() | {"--out": Output(thumbnail_file(episode.id))}
    if episode.video is not None:  # to repeat a long episode takes longer
        video = Stored(episode.run_id, "videos", episode.video, episode.video_sha256)
        options = {"--video": video, **options}
    return Command("thumbnail", options, parse_run_spec(repeated.run.spec))


def _record_thumbnail(session: Session, episode_id: str, result: Result) -> None:
    file = result.files["--out"]
    service.record_thumbnail(session, episode_id, sha256=file.sha256, n_bytes=file.n_bytes)


KINDS = (
    JobKind(VIDEO, load=_load, command=_video_command, record=_record_video, rank=0),
    JobKind(THUMBNAIL, load=_load, command=_thumbnail_command, record=_record_thumbnail, changes_run=False),
)
