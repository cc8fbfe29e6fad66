"""`GET /runs/{id}/agent`: exported once for what is known of a checkpoint, and bounded."""

from pathlib import Path
from typing import Any

import pytest

from backend.analysis.agents import service as agents
from backend.db import Checkpoint, Job, RemovedFile, Run, StoredAgent
from backend.db.engine import reading, writing
from backend.fleet.jobs import service as jobs
from backend.fleet.storage import service as storage
from backend.platform.artifacts import agent_file
from backend.specs.agents import AgentCard
from backend.specs.states import RunState
from tests.support.rows import (
    PROVENANCE,
    add_attempt,
    evaluation_row,
    external_request,
    make_checkpoint,
    make_run,
)
from tests.support.service import RunningService
from workers.engine.files import file_sha256

pytestmark = pytest.mark.service


def _evaluate(service: RunningService, run: Run, *rows: tuple[int, float]) -> None:
    with writing(service.engine) as session:
        for agent_steps, score in rows:
            row = evaluation_row(run.id, agent_steps, score, returns=[score - 1, score, score + 1])
            session.add(row)


def _export(service: RunningService, folder: Path) -> StoredAgent:
    """Do the next job as a worker would; return the row of what it has exported."""
    with writing(service.engine) as session:
        job = jobs.claim(session, "here", 10, ["CartPole-v1"])
        assert job is not None
        assert job.kind == "agent"
        file = folder / agent_file(job.target_id)
        file.write_bytes(b"PK archive")
        service.artifacts.put(file, job.run_id or "", "videos")
        assert jobs.finish(session, job.id, job.tries)
        agents.record(session, job.target_id, sha256=file_sha256(file), n_bytes=10)
        return session.get_one(StoredAgent, job.target_id)


def _run(service: RunningService) -> tuple[Run, list[Checkpoint]]:
    run = make_run(service.engine, RunState.FINISHED)
    add_attempt(service.engine, run.id, provenance=PROVENANCE.model_dump())
    checkpoints = [
        make_checkpoint(service.engine, run, at, file=f"a1-s{at:012d}.pt") for at in (100, 200, 300)
    ]
    _evaluate(service, run, (100, 10.0), (200, 50.0), (300, 20.0))
    return run, checkpoints


def test_best_agent_is_exported_on_the_first_request_and_again_after_an_evaluation(
    service: RunningService, tmp_path: Path
) -> None:
    run, (_, best, latest) = _run(service)
    url = f"/api/v1/runs/{run.id}/agent"
    pending = service.client.get(url, params={"licence": "mit"})
    assert (pending.status_code, pending.json()["state"]) == (202, "queued")
    assert service.client.get(url, params={"licence": "mit"}).json() == pending.json()
    with reading(service.engine) as session:
        [waiting] = session.query(StoredAgent)
    assert waiting.checkpoint_id == best.id
    card = AgentCard.model_validate(waiting.card)
    assert (card.agent_steps, card.licence) == (200, "mit")
    assert card.versions == {"callboard": "0.2.0", **PROVENANCE.packages}
    [score] = card.scores
    assert (score.mean_return, score.n_episodes, score.protocol) == (50.0, 3, "plain")
    row = _export(service, tmp_path)
    answer = service.client.get(url, params={"licence": "mit"})
    assert (answer.status_code, answer.content) == (200, b"PK archive")
    assert answer.headers["content-disposition"] == f'attachment; filename="{agent_file(row.id)}"'
    by_id = service.client.get(url, params={"licence": "mit", "checkpoint": best.id})
    assert by_id.status_code == 200

    _evaluate(service, run, (200, 40.0))
    assert service.client.get(url, params={"licence": "mit"}).status_code == 202
    with reading(service.engine) as session:
        [new] = session.query(StoredAgent)
        [removed] = session.query(RemovedFile)
        assert (new.id != row.id, removed.file) == (True, agent_file(row.id))
        assert not storage.is_needed(session, removed)
        assert storage.is_needed(session, RemovedFile(run_id=run.id, kind="videos", file=agent_file(new.id)))
    assert service.client.get(url, params={"checkpoint": latest.id, "format": "onnx"}).status_code == 202


def test_card_has_the_score_of_the_configuration_over_its_seeds(service: RunningService) -> None:
    runs = [make_run(service.engine, RunState.FINISHED, seed=seed) for seed in range(6)]
    for n, run in enumerate(runs):
        make_checkpoint(service.engine, run, 100, file="a1-s000000000100.pt")
        _evaluate(service, run, (100, 10.0 * n))
    other = make_run(service.engine, RunState.FINISHED, seed=9, config={"gamma": 0.5})
    _evaluate(service, other, (100, 1_000.0))
    assert service.client.get(f"/api/v1/runs/{runs[0].id}/agent").status_code == 202
    with reading(service.engine) as session:
        [row] = session.query(StoredAgent)
    over_seeds = AgentCard.model_validate(row.card).over_seeds
    assert over_seeds is not None
    assert (over_seeds.seeds, over_seeds.median) == ([0, 1, 2, 3, 4, 5], 25.0)
    assert (over_seeds.low, over_seeds.high) == (0.0, 50.0)


def test_failed_export_is_repeated_on_request_only(service: RunningService) -> None:
    run, _ = _run(service)
    url = f"/api/v1/runs/{run.id}/agent"
    service.client.get(url)
    with writing(service.engine) as session:
        job = jobs.claim(session, "here", 10, ["CartPole-v1"])
        assert job is not None
        jobs.fail(session, job.id, job.tries, "this host cannot export ONNX")
    answer = service.client.get(url)
    assert (answer.status_code, "cannot export ONNX" in answer.json()["detail"]) == (409, True)
    assert service.client.get(url, params={"again": True}).status_code == 202


def test_what_cannot_be_exported_is_refused_and_nothing_starts(
    service: RunningService, subtests: pytest.Subtests
) -> None:
    run, _ = _run(service)
    _, (of_other, *_) = _run(service)
    untrained = make_run(service.engine)
    unscored = make_run(service.engine)
    make_checkpoint(service.engine, unscored, 100)
    script = service.client.post("/api/v1/runs", json=external_request()).json()["items"][0]["id"]
    cases: list[tuple[str, dict[str, Any], int, str]] = [
        (run.id, {"checkpoint": "newest"}, 422, "checkpoint"),
        (run.id, {"checkpoint": of_other.id}, 422, "stored one of this run"),
        (run.id, {"format": "pickle"}, 422, "format"),
        (run.id, {"licence": "a b\n"}, 422, "licence"),
        (untrained.id, {}, 409, "the run is queued and has no checkpoint to export"),
        (unscored.id, {}, 409, "evaluate one, or export latest"),
        (script, {}, 409, "which Callboard cannot load"),
    ]
    for run_id, params, status, message in cases:
        with subtests.test(message):
            answer = service.client.get(f"/api/v1/runs/{run_id}/agent", params=params)
            assert (answer.status_code, message in answer.text) == (status, True), answer.text
    with reading(service.engine) as session:
        assert session.query(Job).count() == 0


def test_oldest_exports_of_a_run_make_room(service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "MAX_PER_RUN", 2)
    run, checkpoints = _run(service)
    for checkpoint in checkpoints:
        params = {"checkpoint": checkpoint.id}
        assert service.client.get(f"/api/v1/runs/{run.id}/agent", params=params).status_code == 202
    with reading(service.engine) as session:
        kept = [row.checkpoint_id for row in session.query(StoredAgent).order_by(StoredAgent.id)]
        assert kept == [checkpoint.id for checkpoint in checkpoints[1:]]
        assert session.query(Job).count() == 2
