"""What the client makes of answers: nothing that was logged is deleted because of one.

The law: logged = stored + waiting + reported as dropped, whatever a proxy answers, and whenever it does.
"""

import io
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import numpy as np
import pytest

import callboard
from callboard.__main__ import run_client
from callboard.delivery import Delivery
from callboard.errors import CallboardError, Rejected, Unreachable
from callboard.external import ExternalRun
from callboard.spool import Spool
from callboard.transport import Transport, check, find_server
from tests.client.support import Answer, Proxy, Target, rows_of
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.service

N_ROWS = 7
"""Rows of one call of `log_rows`."""

FINAL = {"run_not_found": 404, "run_not_external": 409, "too_many_sources": 409, "invalid_fields": 422}
"""Status of the codes after which the server will never store something."""

STATUSES = [
    101, 199, 200, 201, 202, 203, 204, 205, 206, 207, 226, 299, 300, 301, 302, 303, 304, 305, 307, 308, 399,
    400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422,
    423, 424, 425, 426, 428, 429, 431, 440, 444, 449, 451, 460, 463, 494, 495, 496, 497, 498, 499, 500, 501,
    502, 503, 504, 505, 506, 507, 508, 509, 510, 511, 520, 521, 522, 523, 524, 525, 526, 530, 561, 599, 999,
]  # fmt: skip


def documents(status: int) -> list[tuple[str, bytes | None]]:
    """Content types and bodies of everything but a final problem document of the server."""
    problem = {"type": "https://example.org/no-order", "title": "No", "status": status, "detail": "no order"}
    foreign = next(code for code in FINAL if FINAL[code] != status)
    return [
        ("text/plain", b"404 page not found\n"),
        ("text/html", b"<html>We are back soon</html>"),
        ("", b""),
        ("application/json", b"null"),
        ("application/json", b"{}"),
        ("application/json", b'{"items":[{}],"error":"no route"}'),
        ("application/json", b"[" * 100_000),
        ("application/json", b"\xff\xfe"),
        ("application/json", None),
        ("application/problem+json", json.dumps(problem).encode()),
        ("application/problem+json", json.dumps(problem | {"code": "order_not_found"}).encode()),
        ("application/problem+json", json.dumps(problem | {"code": foreign}).encode()),
        (
            "application/problem+json",
            json.dumps(problem | {"code": foreign, "status": FINAL[foreign]}).encode(),
        ),
        ("application/json", json.dumps(problem | {"code": "run_not_found"}).encode()),
    ]


def answers(statuses: Sequence[int], n_documents: int | None = None) -> list[Answer]:
    """An answer of each status with each of its documents, or with as many as given, in turn."""
    turn = itertools.count()
    in_turn = []
    for status in statuses:
        of_status = documents(status)
        for _ in range(n_documents or len(of_status)):
            at = next(turn)
            in_turn.append(Answer(status, *of_status[at % len(of_status)], is_forwarded=at % 3 == 0))
    return in_turn


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.background.FIRST_RETRY_S", 0.01)
    monkeypatch.setattr("callboard.background.LAST_RETRY_S", 0.02)


def log_rows(run: ExternalRun, first: int) -> None:
    """Log rows of each kind."""
    for step in range(first, first + 4):
        run.log({"loss/policy": float(step)}, agent_steps=step)
    run.episode(float(first), 1, agent_steps=first)
    run.text(f"at {first}")
    run.text(f"after {first}")


def n_stored(target: Target, run: str | None) -> int:
    """Rows of `log_rows` that the server has; fails if it has one twice."""
    points, lines = target.points(run), target.lines(run)
    steps = [float(row["value"]) for row in points.get("loss/policy", [])]
    episodes = [float(row["value"]) for row in points.get("rollout/episode_return", [])]
    texts = [line for line in lines if line.startswith(("at ", "after "))]
    for values in (steps, episodes, texts):
        assert len(set(values)) == len(values), "each once"
    return len(steps) + len(episodes) + len(texts)


def while_starting(target: Target, proxy: Proxy, answer: Answer, spools: Path) -> None:
    proxy.answer = lambda path, body: answer
    with callboard.init(algorithm="a", environment="e") as run:
        assert run.id is None
        log_rows(run, 0)
        before = proxy.n_answered
        until(lambda: proxy.n_answered > before)
        proxy.answer = lambda path, body: None
        assert run.flush(PATIENCE_S)
        assert run.n_dropped == 0
    assert n_stored(target, run.id) == N_ROWS
    assert list(spools.iterdir()) == []


def while_running(target: Target, proxy: Proxy, answer: Answer, spools: Path) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        log_rows(run, 0)
        before = proxy.n_answered
        proxy.answer = lambda path, body: answer
        log_rows(run, 10)
        assert not run.flush(0.0)
        until(lambda: proxy.n_answered > before + 1)
        proxy.answer = lambda path, body: None
        log_rows(run, 20)
        assert run.flush(PATIENCE_S)
        assert run.n_dropped == 0
    assert n_stored(target, run.id) == 3 * N_ROWS
    assert list(spools.iterdir()) == []


def while_closing(target: Target, proxy: Proxy, answer: Answer, spools: Path) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        log_rows(run, 0)
        assert run.flush(PATIENCE_S)
        proxy.answer = lambda path, body: answer
        log_rows(run, 10)
    assert run.n_dropped == 0
    [folder] = spools.iterdir()
    waiting = rows_of(folder, spools.parent / "copy" / folder.name)
    assert sum(waiting.values()) >= N_ROWS, "kept"
    proxy.answer = lambda path, body: None
    done = callboard.sync()
    assert (done.n_spools, done.n_remaining, done.refused, done.problems) == (1, 0, [], [])
    assert n_stored(target, run.id) == 2 * N_ROWS
    assert list(spools.iterdir()) == []


def while_syncing(target: Target, proxy: Proxy, answer: Answer, spools: Path) -> None:
    proxy.answer = lambda path, body: Answer(502)
    tag = f"after {proxy.n_answered}"
    with callboard.init(algorithm="a", environment="e", tags=[tag]) as run:
        log_rows(run, 0)
    proxy.answer = lambda path, body: answer
    done = callboard.sync()
    assert (done.n_spools, done.n_rows, done.n_remaining, done.refused) == (0, 0, 1, [])
    assert len(done.problems) == 1
    [folder] = spools.iterdir()
    assert sum(rows_of(folder, spools.parent / "copy" / folder.name).values()) >= N_ROWS
    proxy.answer = lambda path, body: None
    done = callboard.sync()
    assert (done.n_spools, done.n_remaining, done.refused, done.problems) == (1, 0, [], [])
    [created] = [row for row in target.runs() if row["tags"] == [tag]]
    assert n_stored(target, created["id"]) == N_ROWS
    assert list(spools.iterdir()) == []


Phase = Callable[[Target, Proxy, Answer, Path], None]
PHASES: list[Phase] = [while_starting, while_running, while_closing, while_syncing]


@pytest.mark.parametrize(
    "phase", [*PHASES[:2], *(pytest.param(phase, marks=pytest.mark.long) for phase in PHASES[2:])]
)
def test_answer_of_something_else_than_the_server_loses_nothing(
    target: Target, proxy: Proxy, spools: Path, phase: Phase
) -> None:
    for answer in (
        Answer(404),
        answers([422])[10],
        Answer(200, "application/json", b"null"),
        Answer(413, is_forwarded=True),
    ):
        phase(target, proxy, answer, spools)


LAST_REQUESTS = ("/runs", "/points", "/episodes", "/log", "/config", "/heartbeat", "/checkpoints", "/videos")
"""Ends of the addresses of all requests of `sync` but the uploads that come before others."""

LOGGED: dict[str, Callable[[ExternalRun, Path], object]] = {
    "points": lambda run, path: run.log({"loss/policy": 1.0}, agent_steps=1),
    "episodes": lambda run, path: run.episode(1.0, 1, agent_steps=1),
    "log": lambda run, path: run.text("at 1"),
    "config": lambda run, path: run.config.update(lr=0.5),
    "state": lambda run, path: None,
    "checkpoint": lambda run, path: run.checkpoint(path),
    "video": lambda run, path: run.video(np.zeros((2, 16, 16, 3), np.uint8)),
}


def answering(answer: Answer, last: str | tuple[str, ...]) -> Callable[[str, bytes], Answer | None]:
    """A proxy that gives this answer at addresses with these ends."""
    return lambda path, body: answer if path.endswith(last) else None


def content_of(spools: Path) -> dict[str, bytes]:
    """All files of the spools, but for the record of the request that is being sent."""
    paths = [path for path in spools.rglob("*") if path.is_file() and path.name != "request.json"]
    return {str(path.relative_to(spools)): path.read_bytes() for path in paths}


@pytest.mark.long
def test_not_found_of_something_else_leaves_every_kind_of_request_byte_for_byte(
    target: Target, proxy: Proxy, spools: Path, tmp_path: Path
) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"parameters")
    with callboard.init(algorithm="a", environment="e") as rewound:
        rewound.log({"loss/policy": 1.0}, agent_steps=9)
    runs = [callboard.init(algorithm="a", environment="e", name=kind) for kind in LOGGED]
    proxy.answer = lambda path, body: Answer(502)
    runs.append(callboard.init(algorithm="a", environment="e", name="created"))
    runs.append(callboard.init(id=str(rewound.id), rewind_to=5))
    for run, log in zip(runs, [*LOGGED.values(), LOGGED["points"], LOGGED["points"]], strict=True):
        log(run, path)
        run.close()
    before = content_of(spools)
    assert len([name for name in before if name.endswith("run.json")]) == len(runs)

    transport = Transport(find_server())
    plain, page, *_, foreign, _, _, code_alone = documents(404)
    for document, last in (
        (plain, ""),  # the uploads, too
        (plain, LAST_REQUESTS),
        (page, LAST_REQUESTS),
        (foreign, LAST_REQUESTS),
        (code_alone, LAST_REQUESTS),
    ):
        proxy.answer = answering(Answer(404, *document), last)
        done = callboard.sync()
        assert (done.n_spools, done.n_rows, done.n_refused, done.refused) == (0, 0, 0, [])
        assert (done.n_remaining, len(done.problems)) == (len(runs), len(runs))
        spool = Spool.open(min(spools.iterdir()))
        assert spool is not None
        with pytest.raises(Unreachable):
            Delivery(spool, transport, lambda reason, n_rows: None).heartbeat()
        spool.close()
        assert content_of(spools) == before
    transport.close()

    proxy.answer = lambda path, body: None
    done = callboard.sync()
    assert (done.n_spools, done.n_remaining, done.refused, done.problems) == (len(runs), 0, [], [])
    assert list(spools.iterdir()) == []
    stored = {run["name"]: run for run in target.runs()}
    assert target.points(stored["points"]["id"]).keys() == {"loss/policy"}
    assert target.points(stored["created"]["id"]).keys() == {"loss/policy"}
    assert target.points(stored["episodes"]["id"]).keys() >= {"rollout/episode_return"}
    assert "at 1" in target.lines(stored["log"]["id"])
    assert [stored[kind]["state"] for kind in LOGGED] == ["finished"] * len(LOGGED)
    for kind in ("checkpoint", "video"):
        files = target.client.get(f"/api/v1/runs/{stored[kind]['id']}/{kind}s").json()["items"]
        assert len(files) == 1
    [point] = target.points(rewound.id)["loss/policy"]
    assert point["agent_steps"] == "1"


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("phase", PHASES)
def test_no_answer_of_any_status_loses_anything(
    target: Target, proxy: Proxy, spools: Path, phase: Phase
) -> None:
    failed: list[str] = []
    cases = answers(STATUSES, 1) + answers([200, 404, 409, 410, 413, 422])
    for answer in cases:
        try:
            phase(target, proxy, answer, spools)
        except (AssertionError, CallboardError, ValueError) as error:
            failed.append(f"{answer.status} {answer.content_type} {answer.body!s:.60}: {error!s:.200}")
            proxy.answer = lambda path, body: None
            for folder in [*spools.iterdir()]:
                folder.rename(spools.parent / f"failed-{folder.name}")
    assert failed == []


def test_client_keeps_what_the_server_refuses_and_sync_lists_it_until_it_is_discarded(
    target: Target, spools: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A heartbeat would resume the run before it is deleted.
    monkeypatch.setattr("callboard.background.HEARTBEAT_INTERVAL_S", 3600.0)
    with callboard.init(algorithm="a", environment="e", name="deleted") as run:
        callboard.init(id=run.id).close()
        target.client.delete(f"/api/v1/runs/{run.id}").raise_for_status()
        log_rows(run, 0)
        assert not run.flush(PATIENCE_S), "at once: the server never accepts it"
        assert run.n_dropped == N_ROWS, "reported"
        log_rows(run, 10)
        assert run.n_dropped == 2 * N_ROWS
    for _ in range(2):
        done = callboard.sync()
        assert (done.n_spools, done.n_rows, done.n_remaining, done.problems) == (0, 0, 0, [])
        [kept] = done.refused
        assert (kept.run, kept.n_rows) == (run.id, N_ROWS)
        assert "does not exist or has been deleted" in kept.reason
    monkeypatch.setattr("sys.argv", ["callboard", "sync"])
    assert run_client() == 1
    assert f"{N_ROWS} rows are set aside" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["callboard", "sync", "--discard", str(run.id)])
    for reply in ("", "n\n", "\n"):
        monkeypatch.setattr("sys.stdin", io.StringIO(reply))
        assert run_client() == 1
        assert kept.folder.exists(), "only after a question"
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert run_client() == 0
    assert list(spools.iterdir()) == []
    assert run_client() == 1, "nothing is left to discard"


@pytest.mark.parametrize("at_end", [False, True])
def test_refused_request_is_kept_with_its_reason_and_the_next_one_is_sent(
    target: Target, proxy: Proxy, spools: Path, tmp_path: Path, at_end: bool
) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"parameters")

    def refuse(path: str, body: bytes) -> Answer | None:
        document = {"status": 422, "detail": "no", "code": "invalid_fields", "errors": []}
        refused = path.endswith(("/episodes", "/checkpoints"))
        return Answer(422, "application/problem+json", json.dumps(document).encode()) if refused else None

    with callboard.init(algorithm="a", environment="e") as run:
        proxy.answer = refuse
        log_rows(run, 0)
        run.checkpoint(path, agent_steps=5)
        if not at_end:
            assert run.flush(PATIENCE_S)
            assert run.n_dropped == 2
    assert n_stored(target, run.id) == N_ROWS - 1
    done = callboard.sync()
    assert [(rejection.run, rejection.n_rows, rejection.reason) for rejection in done.refused] == [
        (run.id, 2, "no")
    ]
    [folder] = spools.iterdir()
    assert [file.read_bytes() for file in folder.glob("*.file")] == [b"parameters"], "kept, too"
    assert callboard.discard(str(run.id)) == 2
    assert list(spools.iterdir()) == []


def test_what_was_refused_counts_towards_the_bound_of_the_spool(
    target: Target, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {"status": 422, "detail": "no", "code": "invalid_fields", "errors": []}
    answer = Answer(422, "application/problem+json", json.dumps(document).encode())
    monkeypatch.setattr("callboard.spool.MAX_SPOOL_BYTES", 20_000)
    with callboard.init(algorithm="a", environment="e") as run:
        proxy.answer = lambda path, body: answer if path.endswith("/log") else None
        for at in range(10):
            run.text(f"{at}" * 4_000)
            if at < 2:  # what is set aside then leaves no room for all others, which wait until the end
                assert run.flush(PATIENCE_S)
    assert run.n_dropped >= 10
    [kept] = callboard.sync().refused
    assert 0 < kept.n_rows <= 5, "the rest found the spool full"


def test_sender_does_not_end_by_an_exception(
    target: Target, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fail = iter(range(5))
    send = Delivery.send

    def fail_first(delivery: Delivery) -> bool:
        if next(fail, None) is not None:
            raise KeyError("a bug")
        return send(delivery)

    monkeypatch.setattr(Delivery, "send", fail_first)
    with callboard.init(algorithm="a", environment="e") as run:
        log_rows(run, 0)
        assert run.flush(PATIENCE_S)
    assert n_stored(target, run.id) == N_ROWS
    assert sum("a bug" in record.getMessage() for record in caplog.records) == 1, "once"


@pytest.mark.parametrize("most", [2_000, 200_000])
def test_requests_that_are_too_large_for_a_proxy_are_halved(
    target: Target, proxy: Proxy, spools: Path, tmp_path: Path, most: int
) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(bytes(range(256)) * 1_000 * (most > 2_000))
    n_lost = 0

    def limit(path: str, body: bytes) -> Answer | None:
        nonlocal n_lost
        if len(body) > most:
            n_lost += 1
            # The first ones are stored and then refused by something on the way back.
            return Answer(413, "text/html", b"<html>413</html>", is_forwarded=n_lost <= 2)
        return None

    proxy.answer = limit
    n_lines = most // 50
    with callboard.init(algorithm="a", environment="e") as run:
        for step in range(most // 20):
            run.log({"loss/policy": float(step)}, agent_steps=step)
        for line in range(n_lines):
            run.text(f"line {line:08} " + "x" * 100)
        if most > 2_000:
            run.checkpoint(path, agent_steps=1)
        assert run.flush(PATIENCE_S)
        assert run.n_dropped == 0
    assert n_lost > 0
    values = [float(row["value"]) for row in target.points(run.id)["loss/policy"]]
    assert values == [*map(float, range(most // 20))], "each once, in order"
    log = target.client.get(f"/api/v1/runs/{run.id}/log", params={"limit": 1}).json()
    assert log["items"]
    assert list(spools.iterdir()) == []


@pytest.mark.long
def test_requests_have_less_than_a_million_bytes(target: Target, proxy: Proxy, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"x" * 2**21)
    names = [f"section/{'x' * 180}{at:04}" for at in range(1_000)]
    with callboard.init(algorithm="a", environment="e") as run:
        for step in range(8):
            run.log(dict.fromkeys(names, step / 3), agent_steps=step)
        for _ in range(300):
            run.text("é" * 8_000)
        run.checkpoint(path)
        assert run.flush(PATIENCE_S)
    assert run.n_dropped == 0
    assert 500_000 < proxy.largest < 1_000_000
    series = target.client.get(f"/api/v1/runs/{run.id}/series").json()["items"]
    assert [row["n_points"] for row in series] == [8] * 1_000
    with pytest.raises(ValueError, match="config"):
        callboard.init(
            algorithm="a", environment="e", config={f"s{at}": ["x" * 1_000] * 100 for at in range(10)}
        )


@pytest.mark.parametrize("field", ["sequence", "offset"])
def test_expected_number_is_a_field_of_the_answer_and_not_read_from_its_words(field: str) -> None:
    def refused(**also: object) -> Rejected:
        document = {"title": "Conflict", "status": 409, "detail": "too early"} | also
        answer = httpx.Response(
            409,
            content=json.dumps(document),
            headers={"Content-Type": "application/problem+json"},
            request=httpx.Request("POST", "http://127.0.0.1/api/v1/runs/a/points"),
        )
        with pytest.raises(Rejected) as caught:
            check(answer)
        return caught.value

    assert refused(expected=5, errors=[{"field": field, "message": "5 comes first"}]).expected == 5
    assert refused(errors=[{"field": field, "message": "must be 5, got 7"}]).expected is None
    assert refused(expected="5").expected is None
