"""Jobs apart from runs: rendering an episode's video or thumbnail, evaluating a checkpoint, encoding a video
that a script has uploaded or taking its thumbnail, verifying a start set, rendering the video of a recorded
game, playing branches, computing saliency maps.

A job runs as a child process like an engine, one at a time per host, next to the runs that train there.
"""

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from signal import SIGKILL
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TypeVar

import structlog
from sqlalchemy.orm import Session

from backend.coordination.context import TRANSIENT_ERRORS, Context, retry_until_available
from backend.db import Branch, Episode, Evaluation, Run, StoredSaliency, Video
from backend.db.job import BRANCH, EVALUATION, GAME, OF_EPISODES, SALIENCY, THUMBNAIL, VIDEO, VIDEO_THUMBNAIL
from backend.db.start_set import VERIFICATION
from backend.fleet.jobs import service as jobs
from backend.platform.artifacts import encoded_file, game_file, observations_file, states_file, thumbnail_file
from backend.replays.branches import service as branches
from backend.replays.episodes import service as episodes
from backend.replays.recordings import service as recordings
from backend.replays.saliency import service as saliency
from backend.replays.videos import service as videos
from backend.runs.checkpoints import service as checkpoints
from backend.runs.evaluations import service as evaluations
from backend.runs.runs import service as runs
from backend.runs.starts import service as starts
from backend.specs import machine_faults
from backend.specs.branches import BranchOutcome
from backend.specs.play import PlaySetup
from backend.specs.protocols import starts_protocol
from backend.specs.saliency import SaliencyMap
from backend.specs.start_sets import StartSetContent
from workers import resume
from workers.engine.files import file_sha256
from workers.engine_process import ENGINE_COMMAND, EngineProcess

TIMEOUT_S = 3600.0
"""Time after which a job fails."""

_TICK_S = 0.2
_OF_SENT_VIDEOS = (videos.ENCODE, VIDEO_THUMBNAIL)
"""Kinds of the jobs of videos that scripts of external runs have sent. Such a run has no spec of ours."""

log = structlog.get_logger(__name__)
T = TypeVar("T")
OfPolicy = TypeVar("OfPolicy", bound=Branch | StoredSaliency)

Result = Callable[[Session], None]
"""Writes a job's result, in the transaction that finishes it."""


@dataclass(frozen=True)
class ClaimedJob:
    """One try at one job."""

    id: str
    run_id: str | None
    kind: str
    target_id: str
    tries: int


class JobFailed(Exception):
    """The job cannot be done; the message is shown to the user."""


class JobKilled(Exception):
    """Its engine was killed, often for the memory that it took: another try may succeed."""


class JobLost(Exception):
    """The job's lease is lost, or the worker is shutting down."""


def claim(
    session: Session, host: str, lease_s: float, environments: Sequence[str], *, may_expire: bool = True
) -> ClaimedJob | None:
    """Claim the next job, as `jobs.service.claim` chooses it."""
    job = jobs.claim(session, host, lease_s, environments, may_expire=may_expire)
    return ClaimedJob(job.id, job.run_id, job.kind, job.target_id, job.tries) if job else None


class JobRunner(threading.Thread):
    """Runs one try at one job."""

    def __init__(
        self,
        context: Context,
        job: ClaimedJob,
        *,
        command: Sequence[str] = ENGINE_COMMAND,
        on_end: Callable[[], None] = lambda: None,
        on_disk_fault: Callable[[int], None] = lambda number: None,
    ) -> None:
        super().__init__(name=f"job-{job.id}", daemon=True)
        self._context = context
        self._job = job
        self._command = command
        self._on_end = on_end
        self._on_disk_fault = on_disk_fault
        # A job without a run has a folder of its own, named after its target.
        self._run_dir = context.run_dir(job.run_id or job.target_id)
        self._jobs_dir = self._run_dir / "jobs"
        self._cancelled = threading.Event()
        self._ended = threading.Event()
        self._renew_at = 0.0
        self._deadline = 0.0

    def cancel(self) -> None:
        """Abort because the worker is shutting down; another worker will claim the job."""
        self._cancelled.set()

    def run(self) -> None:
        """Run the job."""
        self._deadline = monotonic() + TIMEOUT_S
        renewal = threading.Thread(target=self._keep_lease, name=f"{self.name}-lease", daemon=True)
        try:
            renewal.start()
        except RuntimeError as error:  # the host has no room for a thread
            log.warning("job.not_started", job=self._job.id, error=str(error))
            self._requeue()
            self._on_end()
            return
        with structlog.contextvars.bound_contextvars(run_id=self._job.run_id, job=self._job.id):
            try:
                write = self._execute()
                self._write(lambda session: self._finish(session, write))
            except JobLost:
                self._requeue()
            except JobKilled:
                log.warning("job.engine_killed", tries=self._job.tries)
                self._requeue(counts=True)
            except Exception as error:
                fault = machine_faults.errno_of(error) if isinstance(error, OSError) else None
                if fault is not None:
                    log.warning("job.disk_failed", error=str(error))
                    self._on_disk_fault(fault)
                    self._requeue()
                    return
                log.exception("job.failed")
                message = str(error) if isinstance(error, JobFailed) else repr(error)
                # If even this cannot be written, the lease expires.
                with suppress(JobLost, JobFailed):
                    self._write(lambda session: jobs.fail(session, self._job.id, self._job.tries, message))
            finally:
                self._ended.set()
                renewal.join()
                self._on_end()

    def _requeue(self, *, counts: bool = False) -> None:
        with suppress(*TRANSIENT_ERRORS), self._context.writing() as session:
            jobs.requeue(session, self._job.id, self._job.tries, counts=counts)

    def _execute(self) -> Result:
        if self._job.kind == VERIFICATION:
            return self._verify_start_set()
        if self._job.kind == GAME:
            return self._render_game()
        if self._job.kind == BRANCH:
            return self._play_branch()
        if self._job.kind == SALIENCY:
            return self._compute_saliency()
        run, episode, evaluation, video = self._retry(self._find)
        if run is None or (episode is None and evaluation is None and video is None):
            raise JobFailed("its run, episode, evaluation or video has been deleted")
        if video is not None:
            wants_thumbnail = self._job.kind == VIDEO_THUMBNAIL
            return self._take_thumbnail(run, video) if wants_thumbnail else self._encode(run, video)
        if episode is not None:
            render = self._render_video if self._job.kind == VIDEO else self._render_thumbnail
            return render(run, episode)
        assert evaluation is not None
        return self._evaluate(run, evaluation)

    def _find(self) -> tuple[Run | None, Episode | None, Evaluation | None, Video | None]:
        job = self._job
        with self._context.reading() as session:
            run = runs.find(session, job.run_id) if job.run_id is not None else None
            episode = episodes.find(session, job.target_id) if job.kind in OF_EPISODES else None
            is_evaluation = job.kind == EVALUATION
            evaluation = evaluations.find(session, job.target_id) if is_evaluation else None
            video = videos.find(session, job.target_id) if job.kind in _OF_SENT_VIDEOS else None
        return run, episode, evaluation, video

    def _render_video(self, run: Run, episode: Episode) -> Result:
        replay = self._retry(partial(resume.fetch_replay, self._context, episode))
        if replay is None:
            raise JobFailed(f"the replay {episode.replay} is missing or damaged")
        video = self._run_dir / "videos" / f"{episode.id}.mp4"
        video.parent.mkdir(parents=True, exist_ok=True)
        observed = video.with_name(observations_file(episode.id))
        states = video.with_name(states_file(episode.id))
        options = ["--replay", str(replay), "--out", str(video)]
        options += ["--observed", str(observed), "--states", str(states)]
        with self._starts_of(episode) as of_starts:
            self._run_engine(run, "video", *options, *of_starts)
        replay.unlink(missing_ok=True)  # the store has it
        digests: dict[Path, str] = {}
        n_bytes = 0
        for file in (observed, states, video):
            if file.is_file():
                digests[file] = file_sha256(file)
                n_bytes += file.stat().st_size
                self._retry(partial(self._context.store.put, file, episode.run_id, "videos"))
                file.unlink()

        return partial(
            episodes.record_video,
            episode_id=episode.id,
            file=video.name,
            sha256=digests.get(video),
            observations_sha256=digests.get(observed),
            states_sha256=digests.get(states),
            n_bytes=n_bytes,
        )

    def _render_thumbnail(self, run: Run, episode: Episode) -> Result:
        """From its video if it is rendered: repeating a long episode takes longer."""
        source = self._retry(partial(resume.fetch_rendered_video, self._context, episode))
        option = "--video"
        if source is None:
            source = self._retry(partial(resume.fetch_replay, self._context, episode))
            option = "--replay"
        if source is None:
            raise JobFailed(f"the replay {episode.replay} is missing or damaged")
        out = self._run_dir / "videos" / thumbnail_file(episode.id)
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self._starts_of(episode) as of_starts:
                self._run_engine(run, "thumbnail", option, str(source), "--out", str(out), *of_starts)
        finally:
            source.unlink(missing_ok=True)  # the store has it
        sha256, n_bytes = self._put_thumbnail(run, out)
        return partial(episodes.record_thumbnail, episode_id=episode.id, sha256=sha256, n_bytes=n_bytes)

    def _take_thumbnail(self, run: Run, video: Video) -> Result:
        self._jobs_dir.mkdir(parents=True, exist_ok=True)  # by which clean-up knows the folder
        source = self._retry(partial(resume.fetch_encoded_video, self._context, video))
        if source is None:
            raise JobFailed(f"the video {video.video or video.id} is missing or damaged")
        out = source.with_name(thumbnail_file(video.id))
        try:
            self._run_engine(run, "thumbnail", "--video", str(source), "--out", str(out))
        finally:
            source.unlink(missing_ok=True)  # the store has it
        sha256, n_bytes = self._put_thumbnail(run, out)
        return partial(videos.record_thumbnail, video_id=video.id, sha256=sha256, n_bytes=n_bytes)

    def _put_thumbnail(self, run: Run, file: Path) -> tuple[str, int]:
        """Move a thumbnail into the store; return its checksum and size."""
        sha256, n_bytes = file_sha256(file), file.stat().st_size
        self._retry(partial(self._context.store.put, file, run.id, "videos"))
        file.unlink()
        return sha256, n_bytes

    def _encode(self, run: Run, video: Video) -> Result:
        self._jobs_dir.mkdir(parents=True, exist_ok=True)  # by which clean-up knows the folder
        fetch = partial(resume.fetch_uploaded_video, self._context, video)
        upload = self._retry(fetch)
        if upload is None:
            self._retry(partial(self._context.store.check_has_run, run.id))
            return _unusable(video, "the uploaded video is missing or damaged")
        out = self._run_dir / "videos" / encoded_file(video.id)
        out.parent.mkdir(parents=True, exist_ok=True)
        options = ["--upload", str(upload), "--out", str(out), "--form", video.form]
        options += [] if video.fps is None else ["--fps", str(video.fps)]
        try:
            answer = json.loads(self._run_engine(run, "encode", *options))
        except JobFailed as failure:  # no user could request it again
            lines = str(failure).strip().splitlines()
            return _unusable(video, f"it could not be encoded: {lines[-1] if lines else 'the engine died'}")
        finally:
            upload.unlink(missing_ok=True)  # the store has it
        if error := answer.get("error"):
            return _unusable(video, error)
        sha256, n_bytes = file_sha256(out), out.stat().st_size
        self._retry(partial(self._context.store.put, out, run.id, "videos"))
        out.unlink()
        return partial(
            videos.record_encoded,
            video_id=video.id,
            sha256=sha256,
            n_bytes=n_bytes,
            n_frames=answer["n_frames"],
            duration_s=answer["duration_s"],
        )

    def _evaluate(self, run: Run, evaluation: Evaluation) -> Result:
        with self._starts(evaluation.protocol) as of_starts, self._job_folder() as folder:
            # Not into the run's folder, from which its training engine removes old checkpoints.
            fetch = partial(self._fetch_checkpoint, run.id, evaluation.checkpoint, folder)
            if not self._retry(fetch):
                raise JobFailed(f"the checkpoint {evaluation.checkpoint} is missing or damaged")
            options = ["--checkpoint", str(folder / evaluation.checkpoint)]
            options += ["--protocol", evaluation.protocol]
            options += ["--episodes", str(evaluation.n_episodes), "--seed", str(evaluation.seed)]
            result = json.loads(self._run_engine(run, "evaluate", *options, *of_starts))
        return partial(
            evaluations.record_returns,
            evaluation_id=evaluation.id,
            returns=result["returns"],
            lengths_frames=result["lengths_frames"],
            mean_return=result["mean_return"],
        )

    def _play_branch(self) -> Result:
        def read(session: Session) -> Branch | None:
            return branches.find(session, self._job.target_id)

        def options(branch: Branch, folder: Path) -> list[str]:
            plan = folder / "plan.json"
            plan.write_text(branches.plan_of(branch).model_dump_json())
            return ["--plan", str(plan)]

        answer = self._with_policy(read, "branch", options)
        if answer is None:
            return lambda session: None
        played = BranchOutcome.model_validate_json(answer)
        return partial(branches.record, branch_id=self._job.target_id, played=played)

    def _compute_saliency(self) -> Result:
        def read(session: Session) -> StoredSaliency | None:
            return saliency.find(session, self._job.target_id)

        answer = self._with_policy(read, "saliency", lambda row, _: ["--decision", str(row.decision)])
        if answer is None:
            return lambda session: None
        computed = SaliencyMap.model_validate_json(answer)
        return partial(saliency.record, map_id=self._job.target_id, computed=computed)

    def _with_policy(
        self,
        read: Callable[[Session], OfPolicy | None],
        subcommand: str,
        options: Callable[[OfPolicy, Path], list[str]],
    ) -> str | None:
        """Run the engine on an episode's replay with a checkpoint that may be of another run.

        Args:
            read: the row of the branch or map.
            subcommand: of the engine.
            options: returns its other options, given the row and a folder for their files.

        Returns:
            Its standard output; None if the row has been deleted.
        """

        def rows() -> tuple[OfPolicy, Episode, Run, Run | None] | None:
            with self._context.reading() as session:
                row = read(session)
                episode = None if row is None else episodes.find(session, row.episode_id)
                run = None if row is None else runs.find(session, row.run_id)
                if row is None or episode is None or run is None:
                    return None
                return row, episode, run, runs.find(session, row.policy_run_id)

        stored: tuple[OfPolicy, Episode, Run, Run | None] | None = self._retry(rows)
        if stored is None:
            return None
        row, episode, run, policy_run = stored
        if policy_run is None:
            raise JobFailed("the run of its checkpoint has been deleted")
        replay = self._retry(partial(resume.fetch_replay, self._context, episode))
        if replay is None:
            raise JobFailed(f"the replay {episode.replay} is missing or damaged")
        with self._starts_of(episode) as of_starts, self._job_folder() as folder:
            # Not into the folder of the policy's run, which another host may train, or clean-up remove from.
            fetch = partial(self._fetch_checkpoint, row.policy_run_id, row.checkpoint, folder)
            if not self._retry(fetch):
                raise JobFailed(f"the checkpoint {row.checkpoint} is missing or damaged")
            of_policy = folder / "policy"
            resume.write_spec(of_policy, policy_run.spec)
            of_files = ["--replay", str(replay), "--checkpoint", str(folder / row.checkpoint)]
            of_files += ["--policy", str(of_policy / "spec.json"), *of_starts, *options(row, folder)]
            of_files += self._states_of(episode, folder)
            answer = self._run_engine(run, subcommand, *of_files)
        replay.unlink(missing_ok=True)  # the store has it
        return answer

    def _states_of(self, episode: Episode, folder: Path) -> list[str]:
        """The engine's options for the emulator states of an episode; none if there are none, or they are
        lost: they only save time."""
        if episode.states_sha256 is None:
            return []
        file = states_file(episode.id)
        fetch = partial(resume.fetch_into, self._context, episode.run_id, "videos", file)
        if not self._retry(partial(fetch, episode.states_sha256, folder)):
            return []
        return ["--states", str(folder / file)]

    @contextmanager
    def _starts_of(self, episode: Episode) -> Iterator[list[str]]:
        """The engine's options for the start set of an episode's protocol; none if it has no set.

        Raises:
            JobFailed: the set has been deleted.
        """
        read = partial(episodes.protocol_of, self._context.store, episode)
        with self._starts(self._retry(read) or "") as options:
            yield options

    @contextmanager
    def _starts(self, protocol: str) -> Iterator[list[str]]:
        """The engine's options for the start set of a protocol; none if it has no set.

        Raises:
            JobFailed: the set has been deleted.
        """
        if starts_protocol(protocol) is None:
            yield []
            return

        def read() -> bytes | None:
            with self._context.reading() as session:
                return starts.states_of(session, protocol)

        states = self._retry(read)
        if states is None:
            raise JobFailed(f"the start set of {protocol} has been deleted")
        with self._job_folder() as folder:
            file = folder / "starts.npz"
            file.write_bytes(states)
            yield ["--starts", str(file)]

    def _verify_start_set(self) -> Result:
        set_id = self._job.target_id

        def read() -> bytes | None:
            with self._context.reading() as session:
                return starts.document_of(session, set_id)

        content = self._retry(read)
        if content is None:
            return lambda session: None
        try:
            with self._job_folder() as folder:
                document, out = folder / "set.json", folder / "starts.npz"
                document.write_bytes(content)
                options = ("--document", str(document), "--out", str(out))
                report = json.loads(self._wait_for_engine(folder, "start-set", options))
                if report["error"] is not None:
                    return partial(starts.record_mismatch, set_id=set_id, error=report["error"])
                verified = StartSetContent.model_validate(report["set"])
                states = out.read_bytes()
        finally:
            shutil.rmtree(self._run_dir, ignore_errors=True)
        return partial(starts.record_verified, set_id=set_id, content=verified, states=states)

    def _render_game(self) -> Result:
        recording_id = self._job.target_id

        def read() -> tuple[PlaySetup, bytes] | None:
            with self._context.reading() as session:
                return recordings.to_render(session, recording_id)

        game = self._retry(read)
        if game is None:
            return lambda session: None
        setup, content = game
        try:
            with self._job_folder() as folder:
                replay, out = folder / "replay.npz", folder / game_file(recording_id)
                states = folder / states_file(recording_id)
                replay.write_bytes(content)
                (folder / "spec.json").write_text(setup.model_dump_json())
                options = ("--replay", str(replay), "--out", str(out), "--states", str(states))
                self._wait_for_engine(folder, "game", options)
                files = [file for file in (out, states) if file.is_file()]
                digests = {file: file_sha256(file) for file in files}
                n_bytes = sum(file.stat().st_size for file in files)
                for file in files:
                    self._retry(partial(self._context.store.put, file, recording_id, "videos"))
        finally:
            shutil.rmtree(self._run_dir, ignore_errors=True)
        return partial(
            recordings.record_video,
            recording_id=recording_id,
            sha256=digests[out],
            states_sha256=digests.get(states),
            n_bytes=n_bytes,
        )

    def _fetch_checkpoint(self, run_id: str, file: str, folder: Path) -> bool:
        """Fetch a checkpoint of a run into a folder; return whether it is intact."""
        with self._context.reading() as session:
            checkpoint = checkpoints.of_file(session, run_id, file)
        return checkpoint is not None and resume.fetch_into(
            self._context, run_id, "checkpoints", file, checkpoint.sha256, folder
        )

    def _run_engine(self, run: Run, subcommand: str, *options: str) -> str:
        """Run the engine to its end; return its standard output.

        It runs in a temporary folder: the run folder's spec belongs to its training and may change.

        Raises:
            JobFailed: it failed; the message is the end of its output.
            JobLost: the lease is lost, or the worker is shutting down.
        """
        with self._job_folder() as folder:
            if self._job.kind not in _OF_SENT_VIDEOS:
                resume.write_spec(folder, run.spec)
            return self._wait_for_engine(folder, subcommand, options)

    @contextmanager
    def _job_folder(self) -> Iterator[Path]:
        """A temporary folder, by whose name clean-up knows it."""
        self._jobs_dir.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f"{self._job.id}-", dir=self._jobs_dir) as folder:
            yield Path(folder)

    def _wait_for_engine(self, folder: Path, subcommand: str, options: Sequence[str]) -> str:
        stdout = folder / "stdout.log"
        start = partial(
            EngineProcess,
            [subcommand, str(folder), *options],
            output=folder / "stderr.log",
            stdout=stdout,
            command=self._command,
            niceness=self._context.settings.engine_niceness,
        )
        process = self._retry(start)
        try:
            while not process.has_exited():
                if self._cancelled.wait(_TICK_S):
                    raise JobLost
                process.bound_output()
                if monotonic() > self._deadline:
                    raise JobFailed(f"it took longer than {TIMEOUT_S:.0f} s")
        finally:
            status = process.reap()
        if (fault := machine_faults.errno_of_exit_status(status)) is not None:
            raise OSError(fault, machine_faults.describe(fault))
        if status == -SIGKILL and self._job.tries < jobs.MAX_TRIES:
            raise JobKilled
        if status != 0:
            raise JobFailed(process.output_tail() or f"the engine exited with status {status}")
        return stdout.read_text()

    def _keep_lease(self) -> None:
        """Renew the lease until the job ends, also while a slow store transfers a file; cancel the job if the
        lease is lost."""
        while not self._ended.wait(_TICK_S):
            try:
                self._renew()
            except JobLost:
                self._cancelled.set()
                return
            except Exception:
                log.exception("job.not_renewed", job=self._job.id)

    def _renew(self) -> None:
        now = monotonic()
        if now < self._renew_at or now > self._deadline:
            return
        self._renew_at = now + self._context.settings.lease_s / 3
        with suppress(*TRANSIENT_ERRORS), self._context.writing() as session:
            if not jobs.renew(session, self._job.id, self._job.tries, self._context.settings.lease_s):
                raise JobLost

    def _finish(self, session: Session, write: Result) -> None:
        if jobs.finish(session, self._job.id, self._job.tries):
            write(session)
            if self._job.run_id is not None:
                is_thumbnail = self._job.kind in (THUMBNAIL, VIDEO_THUMBNAIL)
                # Who waits for a thumbnail follows its job: nothing else has to be fetched again.
                runs.bump_revision(session, self._job.run_id, ["thumbnails"] if is_thumbnail else [])

    def _write(self, action: Callable[[Session], object]) -> None:
        def write() -> None:
            with self._context.writing() as session:
                action(session)

        self._retry(write)

    def _retry(self, action: Callable[[], T]) -> T:
        """Retry an action while the database or the artifact store is unavailable, or the host lacks memory,
        processes or open files for it.

        Raises:
            JobFailed: they were unavailable for too long.
            JobLost: the lease is lost, or the worker is shutting down.
            OSError: this host's disk is full or broken; another host may take the job.
        """

        def wait(error: Exception) -> None:
            if isinstance(error, FileNotFoundError):
                raise error
            if isinstance(error, OSError) and machine_faults.errno_of(error) is not None:
                raise error
            log.warning("job.waiting", error=str(error)[:500])
            if monotonic() > self._deadline:
                raise JobFailed(f"it took longer than {TIMEOUT_S:.0f} s: {error}") from error
            if self._cancelled.wait(1.0):
                raise JobLost from None

        return retry_until_available(action, wait)


def _unusable(video: Video, reason: str) -> Result:
    return lambda session: videos.record_unusable(session, video.id, reason)
