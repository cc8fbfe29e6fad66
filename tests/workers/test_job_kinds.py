"""Every kind of job is declared, and the engine understands its command."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

import backend
from backend.analysis.agents.job import AgentJob
from backend.coordination.context import Context
from backend.db import Branch, Run, StoredAgent, StoredSaliency, job
from backend.db.base import new_id
from backend.fleet.jobs.kinds import FileLost, Stored, Written, job_kinds
from backend.replays.episodes.job import PolicyJob, RepeatedEpisode
from backend.replays.recordings.job import Game
from backend.runs.evaluations.job import EvaluationJob
from backend.specs.play import PlaySetup
from backend.specs.run import parse_run_spec
from tests.support.rows import CARTPOLE, agent_card, episode_row, evaluation_row, video_row
from workers.engine import commands
from workers.job_files import JobFiles, job_folder

T = TypeVar("T")

pytestmark = pytest.mark.service

RUN = Run(id=new_id(), spec=parse_run_spec(CARTPOLE).model_dump(mode="json"))
STARTS = {"--starts": Written("starts.npz", b"states")}
CONTENT = b"content"
EPISODE = RepeatedEpisode(
    episode_row(RUN.id, video="v.mp4", states_sha256=hashlib.sha256(CONTENT).hexdigest()), RUN, STARTS
)
CHECKPOINT = Stored(RUN.id, "checkpoints", "a.pt", None, "the checkpoint a.pt")
PLANNED = {"decision": 3, "n_continuations": 2, "horizon": 5, "seed": 1, "first_action": None}
NEEDED: dict[str, object] = {
    job.VIDEO: EPISODE,
    job.THUMBNAIL: EPISODE,
    job.ENCODE: video_row(RUN.id, sent="u.sent", fps=3.0),
    job.VIDEO_THUMBNAIL: video_row(RUN.id, video="v.mp4"),
    job.VERIFICATION: b"{}",
    job.GAME: Game(new_id(), PlaySetup(environment="CartPole-v1", environment_config={}), b"replay"),
    job.EVALUATION: EvaluationJob(
        evaluation_row(RUN.id, 100, None, checkpoint="a.pt"), RUN, CHECKPOINT, STARTS
    ),
    job.BRANCH: PolicyJob(Branch(**PLANNED), EPISODE, RUN, CHECKPOINT),
    job.AGENT: AgentJob(
        StoredAgent(id=new_id(), format="onnx", card=agent_card(RUN.id).model_dump(mode="json")),
        RUN,
        CHECKPOINT,
    ),
    job.SALIENCY: PolicyJob(StoredSaliency(decision=3), EPISODE, RUN, CHECKPOINT),
}
"""What a job of each kind loads."""

NAMES = {value for name, value in vars(job).items() if name.isupper() and isinstance(value, str)}


def _once(action: Callable[[], T]) -> T:
    return action()


def test_every_kind_is_declared_by_a_resource() -> None:
    resources = {path.parent for path in Path(backend.__file__).parent.glob("*/*/job.py")}
    assert len(resources) >= 7
    assert set(job_kinds()) == NAMES
    declared_in = {kind.command.__module__ for kind in job_kinds().values()}
    assert len(declared_in) == len(resources), "every job.py declares a kind"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_engine_accepts_the_command_of_every_kind(context: Context, tmp_path: Path, name: str) -> None:
    kind = job_kinds()[name]
    command = kind.command(NEEDED[name])
    stored = [value for value in command.options.values() if isinstance(value, Stored)]

    def arguments() -> list[str]:
        with job_folder(tmp_path / "run", "j", is_of_run=True) as folder:
            return JobFiles(context, RUN.id, folder, _once).arguments(command)

    needed = [file for file in stored if file.title is not None]
    if needed:
        with pytest.raises(FileLost, match=f"^{needed[0].title} is missing or damaged$"):
            arguments()
    for files in (needed, stored):  # without what is fetched only if it is there, and with it
        for file in files:
            local = tmp_path / file.name
            local.write_bytes(CONTENT)
            context.store.put(local, file.owner_id, file.kind)
        given = arguments()
        for option, value in command.options.items():
            is_fetched = not isinstance(value, Stored) or (value in files and value.unless not in given)
            assert (option in given) == is_fetched, option
        args = commands.parse(given)
        assert args.run.__module__ == f"workers.engine.commands.{command.subcommand.replace('-', '_')}"
