from datetime import timedelta
from threading import Barrier, Thread

from sqlalchemy import Engine

from backend.db import Job
from backend.db.changes import take_changes, take_work
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.jobs import repository
from tests.support.runs import make_run

TARGET = "0" * 26
WORLDS = ["CartPole-v1"]


def _request(engine: Engine, target: str = TARGET) -> Job:
    run = make_run(engine)
    with writing(engine) as session:
        return repository.request(session, "video", run.id, target, queue="cpu")


def _expire(engine: Engine, job_id: str) -> None:
    with writing(engine) as session:
        job = session.get(Job, job_id)
        assert job is not None
        job.lease_expires_at = database_now(session) - timedelta(seconds=1)


def test_asked_by_two_at_once_it_is_one_job(engine: Engine) -> None:
    run = make_run(engine)
    found: list[str] = []
    both = Barrier(2, timeout=10)

    def ask() -> None:
        with writing(engine) as session:
            if engine.dialect.name == "postgresql":
                assert repository.find(session, "video", TARGET) is None
                both.wait()
            found.append(repository.request(session, "video", run.id, TARGET, queue="cpu").id)

    askers = [Thread(target=ask) for _ in range(2)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert len(found) == 2
    assert len(set(found)) == 1


def test_asked_twice_it_is_one_job(engine: Engine) -> None:
    run = make_run(engine)
    with writing(engine) as session:
        first = repository.request(session, "video", run.id, TARGET, queue="cpu")
    assert take_work(session) == ["cpu"]
    assert take_changes(session) == [{"job": first.id, "run": run.id, "state": "queued"}]
    with writing(engine) as session:
        assert repository.request(session, "video", run.id, TARGET, queue="cpu").id == first.id
        assert repository.request(session, "evaluation", run.id, TARGET, queue="cpu").id != first.id


def test_claimed_once_and_done(engine: Engine) -> None:
    job = _request(engine)
    with writing(engine) as session:
        claimed = repository.claim(session, "here", 10, WORLDS)
        assert claimed is not None
        assert (claimed.id, claimed.state, claimed.host, claimed.tries) == (job.id, "running", "here", 1)
        assert repository.claim(session, "there", 10, WORLDS) is None
        assert repository.renew(session, job.id, 1, 10)
        assert repository.finish(session, job.id, 1)
        assert not repository.finish(session, job.id, 1)
    with reading(engine) as session:
        done = repository.find(session, "video", TARGET)
        assert done is not None
        assert (done.state, done.host, done.lease_expires_at) == ("done", None, None)


def test_a_job_in_a_world_the_host_cannot_make_is_left_for_others(engine: Engine) -> None:
    _request(engine)
    with writing(engine) as session:
        assert repository.claim(session, "here", 10, ["ALE/Pong-v5"]) is None
        assert repository.claim(session, "there", 10, ["ALE/Pong-v5", "CartPole-v1"]) is not None


def test_a_dead_workers_job_goes_to_another_whose_result_counts(engine: Engine) -> None:
    job = _request(engine)
    with writing(engine) as session:
        repository.claim(session, "dead", 10, WORLDS)
    _expire(engine, job.id)
    with writing(engine) as session:
        again = repository.claim(session, "alive", 10, WORLDS)
        assert again is not None
        assert (again.id, again.tries) == (job.id, 2)
    with writing(engine) as session:
        assert not repository.renew(session, job.id, 1, 10)
        assert not repository.finish(session, job.id, 1)
        assert not repository.fail(session, job.id, 1, "late")
        assert repository.finish(session, job.id, 2)


def test_after_enough_deaths_it_has_failed_and_the_next_is_claimed(engine: Engine) -> None:
    job = _request(engine)
    for _ in range(repository.MAX_TRIES):
        with writing(engine) as session:
            assert repository.claim(session, "here", 10, WORLDS) is not None
        _expire(engine, job.id)
    other = _request(engine, "1" * 26)
    with writing(engine) as session:
        claimed = repository.claim(session, "here", 10, WORLDS)
        assert claimed is not None
        assert claimed.id == other.id
    with reading(engine) as session:
        failed = repository.find(session, "video", TARGET)
        assert failed is not None
        assert failed.state == "failed"
        assert "died 3 times" in str(failed.error)


def test_a_failed_job_is_tried_again_when_asked(engine: Engine) -> None:
    job = _request(engine)
    with writing(engine) as session:
        repository.claim(session, "here", 10, WORLDS)
        assert repository.fail(session, job.id, 1, "no ffmpeg")
        again = repository.request(session, "video", job.run_id, TARGET, queue="cpu")
        assert (again.id, again.state, again.tries, again.error) == (job.id, "queued", 0, None)


def test_several_workers_at_once_get_different_jobs(engine: Engine) -> None:
    for i in range(6):
        _request(engine, str(i) * 26)
    got: list[str] = []

    def work(host: str) -> None:
        for _ in range(2):
            with writing(engine) as session:
                job = repository.claim(session, host, 10, WORLDS)
            if job is not None:
                got.append(job.id)

    threads = [Thread(target=work, args=(f"h{i}",)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == len(set(got)) == 6
