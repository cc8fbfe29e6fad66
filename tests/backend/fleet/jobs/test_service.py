from datetime import timedelta
from threading import Barrier, Thread

import pytest
from sqlalchemy import Engine

from backend.db import Job
from backend.db.changes import ChangeEvent, take_changes, take_work
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.fleet.jobs import repository, service
from tests.support.rows import make_run
from tests.support.waiting import PATIENCE_S

TARGET = "0" * 26
ENVS = ["CartPole-v1"]
LEASE_S = 3600.0


def _request(engine: Engine, target: str = TARGET) -> Job:
    run = make_run(engine)
    with writing(engine) as session:
        return service.request(session, "video", run.id, target, queue="cpu")


def _expire(engine: Engine, job_id: str) -> None:
    with writing(engine) as session:
        job = session.get(Job, job_id)
        assert job is not None
        job.lease_expires_at = database_now(session) - timedelta(seconds=1)


def test_concurrent_requests_for_same_target_create_one_job(engine: Engine) -> None:
    run = make_run(engine)
    job_ids: list[str] = []
    both = Barrier(2, timeout=PATIENCE_S)

    def request() -> None:
        with writing(engine) as session:
            if engine.dialect.name == "postgresql":
                assert repository.find(session, "video", TARGET) is None
                both.wait()
            job_ids.append(service.request(session, "video", run.id, TARGET, queue="cpu").id)

    threads = [Thread(target=request, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(job_ids) == 2
    assert len(set(job_ids)) == 1


def test_job_is_left_to_a_host_with_the_package_of_the_runs_algorithm(engine: Engine) -> None:
    run = make_run(engine, package="mine==1.0")
    with writing(engine) as session:
        job = service.request(session, "evaluation", run.id, TARGET, queue="cpu")
        assert service.claim(session, "a", LEASE_S, ENVS) is None
        assert service.claim(session, "a", LEASE_S, ENVS, versions={"mine": "2.0"}) is None
        claimed = service.claim(session, "b", LEASE_S, ENVS, versions={"mine": "1.0"})
        assert claimed is not None
        assert claimed.id == job.id


def test_repeated_request_returns_same_job(engine: Engine) -> None:
    run = make_run(engine)
    with writing(engine) as session:
        first = service.request(session, "video", run.id, TARGET, queue="cpu")
    assert take_work(session) == ["cpu"]
    parents = {"run": run.id}
    changed = ["state", "video"]
    assert take_changes(session) == [
        ChangeEvent(kind="job", id=first.id, parents=parents, state="queued", changed=changed)
    ]
    with writing(engine) as session:
        assert service.request(session, "video", run.id, TARGET, queue="cpu").id == first.id
        assert service.request(session, "evaluation", run.id, TARGET, queue="cpu").id != first.id


def test_claimed_job_is_renewed_and_finished_once(engine: Engine) -> None:
    job = _request(engine)
    with writing(engine) as session:
        claimed = service.claim(session, "here", LEASE_S, ENVS)
        assert claimed is not None
        assert (claimed.id, claimed.state, claimed.host, claimed.tries) == (job.id, "running", "here", 1)
        assert service.claim(session, "there", LEASE_S, ENVS) is None
        assert service.renew(session, job.id, 1, LEASE_S)
        assert service.finish(session, job.id, 1)
        assert not service.finish(session, job.id, 1)
    with reading(engine) as session:
        done = repository.find(session, "video", TARGET)
        assert done is not None
        assert (done.state, done.host, done.lease_expires_at) == ("done", None, None)


def test_claim_skips_jobs_in_environments_the_host_lacks(engine: Engine) -> None:
    _request(engine)
    with writing(engine) as session:
        assert service.claim(session, "here", LEASE_S, ["ALE/Pong-v5"]) is None
        assert service.claim(session, "there", LEASE_S, ["ALE/Pong-v5", "CartPole-v1"]) is not None


def test_who_requests_jobs_takes_turns(engine: Engine) -> None:
    run = make_run(engine)
    with writing(engine) as session:
        for target, sender in enumerate("aaab"):
            service.request(session, "video", run.id, str(target) * 26, queue="cpu", requested_by=sender)
        service.request(session, "evaluation", run.id, TARGET, queue="cpu", requested_by="b")
    turns = []
    for _ in range(5):
        with writing(engine) as session:
            job = service.claim(session, "here", LEASE_S, ENVS)
            assert job is not None
            turns.append((job.requested_by, job.kind))
    of_a, of_b = ("a", "video"), ("b", "video")
    assert turns == [of_a, of_b, of_a, ("b", "evaluation"), of_a]


def test_job_with_expired_lease_is_claimed_again_and_ignores_first_worker(engine: Engine) -> None:
    job = _request(engine)
    with writing(engine) as session:
        service.claim(session, "dead", LEASE_S, ENVS)
    _expire(engine, job.id)
    with writing(engine) as session:
        # The database itself was away: its host may still run it.
        assert service.claim(session, "alive", LEASE_S, ENVS, may_expire=False) is None
        again = service.claim(session, "alive", LEASE_S, ENVS)
        assert again is not None
        assert (again.id, again.tries) == (job.id, 2)
    with writing(engine) as session:
        assert not service.renew(session, job.id, 1, LEASE_S)
        assert not service.finish(session, job.id, 1)
        assert not service.fail(session, job.id, 1, "late")
        assert service.finish(session, job.id, 2)


def test_job_fails_after_max_tries_and_next_job_is_claimed(engine: Engine) -> None:
    job = _request(engine)
    for _ in range(service.MAX_TRIES):
        with writing(engine) as session:
            assert service.claim(session, "here", LEASE_S, ENVS) is not None
        _expire(engine, job.id)
    other = _request(engine, "1" * 26)
    with writing(engine) as session:
        claimed = service.claim(session, "here", LEASE_S, ENVS)
        assert claimed is not None
        assert claimed.id == other.id
    with reading(engine) as session:
        failed = repository.find(session, "video", TARGET)
        assert failed is not None
        assert failed.state == "failed"
        assert "died 3 times" in str(failed.error)


def test_request_queues_failed_job_again(engine: Engine) -> None:
    job = _request(engine)
    with writing(engine) as session:
        service.claim(session, "here", LEASE_S, ENVS)
        assert service.fail(session, job.id, 1, "no ffmpeg")
        again = service.request(session, "video", job.run_id, TARGET, queue="cpu")
        assert (again.id, again.state, again.tries, again.error) == (job.id, "queued", 0, None)


def test_concurrent_claims_return_different_jobs(engine: Engine) -> None:
    for i in range(6):
        _request(engine, str(i) * 26)
    got: list[str] = []

    def work(host: str) -> None:
        for _ in range(2):
            with writing(engine) as session:
                job = service.claim(session, host, LEASE_S, ENVS)
            if job is not None:
                got.append(job.id)

    threads = [Thread(target=work, args=(f"h{i}",), daemon=True) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == len(set(got)) == 6


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            "Traceback:\n  ...\nworkers.engine.restore.ReplayMismatchError: reward nan",
            "ReplayMismatchError: reward nan",
        ),
        ("OSError(28, 'No space left on device')\n", "OSError(28, 'No space left on device')"),
        ("the emulator's version, 0.12.1, differs: a.b", "the emulator's version, 0.12.1, differs: a.b"),
        (None, "unknown error"),
    ],
)
def test_reason_of_a_failed_job_is_one_line_without_modules(error: str | None, reason: str) -> None:
    assert service.reason_of(Job(error=error)) == reason
