"""What the client keeps on disk, and that each batch of it is stored exactly once."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import callboard
from callboard.delivery import Delivery, create_run
from callboard.errors import Unreachable
from callboard.manifest import Manifest
from callboard.rows import Points, frames_of
from callboard.spool import Request, Spool, new_ulid
from callboard.transport import Transport, find_server
from tests.client.support import NOBODY, Intermittent, Target, rows_of
from tests.support.waiting import PATIENCE_S, until

ROOT = Path(__file__).parents[2]

LOGS_FOR_EVER = """
import itertools, sys, time, callboard
run = callboard.init(name="killed", algorithm="a", environment="e", id=None)
print(flush=True)
for step in itertools.count():
    run.log({"loss/policy": step}, agent_steps=step)
    if step % 100 == 0:
        time.sleep(0.01)
"""

RESUMES_AND_LOGS_FOR_EVER = """
import itertools, sys, time, callboard
run = callboard.init(id=sys.argv[1], record=False)
print(flush=True)
for step in itertools.count(int(sys.argv[2])):
    run.log({"loss/policy": step}, agent_steps=step)
    if step % 50 == 0:
        run.episode(step, 50, agent_steps=step)
        run.text(f"at {step}")
    if step % 100 == 0:
        time.sleep(0.01)
"""


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    """A spool whose run the server has not created yet."""
    create = {"origin": "external", "algorithm": "a", "environment": "e"}
    spool = Spool.create(Manifest(new_ulid(), NOBODY, None, create, "a e"), tmp_path / "spool")
    yield spool
    spool.close()


def points(first: int, n: int) -> Iterator[tuple[str, int, bytes]]:
    """The frames of points at consecutive agent steps, each with its agent steps as value."""
    return frames_of(
        [Points(step, None, 0.5, ("loss/policy",), [float(step)]) for step in range(first, first + n)]
    )


def append(spool: Spool, first: int, n: int) -> None:
    for frame in points(first, n):
        spool.append(*frame)


def test_frames_of_one_kind_are_joined_up_to_the_limit_of_a_request(spool: Spool) -> None:
    for first in range(0, 12_000, 4_000):
        append(spool, first, 4_000)
    spool.append("log", 1, b'[{"message":"x"}]')
    append(spool, 12_000, 1)
    requests = []
    while (request := spool.next()) is not None:
        requests.append((request.kind, request.sequence, request.n_rows))
        assert spool.next() == request, "the same until it is confirmed"
        spool.confirm(request, stored=True)
    assert requests == [("points", 1, 8_000), ("points", 2, 4_000), ("log", 3, 1), ("points", 4, 1)]


def test_request_that_was_being_sent_is_the_same_for_the_next_process(spool: Spool) -> None:
    append(spool, 0, 10)
    request = spool.next()
    append(spool, 10, 10)
    folder = spool.folder
    spool.close()
    following = Spool.open(folder)
    assert following is not None
    assert following.next() == request, "though more has been written since"
    assert request is not None
    following.confirm(request, stored=True)
    last = following.next()
    assert last is not None
    assert (last.sequence, last.n_rows) == (2, 10)
    following.close()


def test_copy_of_a_confirmed_file_is_deleted_before_nothing_is_waiting(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = spool.add_file(1, lambda path: path.write_bytes(b"x"))
    spool.append("checkpoint", 1, b'[{"upload":"%s"}]' % upload.encode())
    request = spool.next()
    assert request is not None
    remove, waiting = spool.remove_file, []

    def note_waiting(upload: str) -> None:
        waiting.append(spool.n_waiting)
        remove(upload)

    monkeypatch.setattr(spool, "remove_file", note_waiting)
    spool.confirm(request, stored=True, upload=upload)
    assert (waiting, spool.n_waiting) == ([1], 0)
    assert not spool.file(upload).exists()


def test_spool_of_a_running_process_is_not_sent(spool: Spool) -> None:
    assert Spool.open(spool.folder) is None
    append(spool, 0, 1)
    done = callboard.sync(spool.folder.parent)
    assert (done.n_spools, done.n_remaining, done.problems) == (0, 0, [])
    assert spool.next() is not None


def test_spool_of_another_server_than_callboard_url_names_the_option_that_sends_it(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(spool, 0, 1)
    spool.close()
    monkeypatch.setenv("CALLBOARD_URL", "http://lab-server:8642")
    done = callboard.sync(spool.folder.parent)
    assert (done.n_spools, done.n_remaining) == (0, 1)
    (problem,) = done.problems
    assert f"it was logged to {NOBODY}, not to CALLBOARD_URL" in problem
    assert "`callboard sync --url ADDRESS`" in problem
    monkeypatch.setenv("CALLBOARD_URL", f" {NOBODY}/runs/ ")
    (problem,) = callboard.sync(spool.folder.parent).problems
    assert "it was logged to" not in problem


def test_missing_token_is_reported_with_the_variables_that_are_not_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLBOARD_HOME", str(tmp_path))
    for name in ("CALLBOARD_URL", "CALLBOARD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    remedy = "set CALLBOARD_TOKEN to a token from the server's Settings page"
    with pytest.raises(callboard.NotConfigured) as elsewhere:
        find_server("http://lab-server:8642")
    assert str(elsewhere.value) == f"token: http://lab-server:8642 needs a token: {remedy}"
    with pytest.raises(callboard.NotConfigured) as here:
        find_server()
    start = f"no token in {tmp_path}: start `callboard up` there"
    (tmp_path / "command-line-key").write_text("key\n")
    assert find_server("http://127.0.0.1:8642/runs").token == find_server().token == "key"
    (tmp_path / "command-line-key").unlink()
    assert str(here.value) == f"token: {start}, or {remedy} and CALLBOARD_URL to its address"


@pytest.mark.service
def test_segments_that_cannot_be_listed_are_not_taken_for_sent(
    target: Target, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.spool.SEGMENT_BYTES", 500)
    for first in range(0, 60, 20):
        append(spool, first, 20)
    spool.close()
    assert len(list(spool.folder.glob("*.log"))) > 1
    list_all, is_failing = Path.iterdir, True

    def fail_once(folder: Path) -> Iterator[Path]:
        nonlocal is_failing
        if is_failing and folder == spool.folder:
            is_failing = False
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(folder))
        return list_all(folder)

    monkeypatch.setattr(Path, "iterdir", fail_once)
    done = callboard.sync(spool.folder.parent, url=target.service.url)
    assert (done.n_spools, done.n_remaining) == (0, 1)
    assert "Too many open files" in done.refused[0].reason
    is_failing = True
    assert callboard.discard(spool.folder.name, spool.folder.parent) == 0, "it is whole"
    done = callboard.sync(spool.folder.parent, url=target.service.url)
    assert (done.n_spools, done.n_rows, done.refused) == (1, 60, [])


def test_latest_steps_are_those_of_the_newest_segment_with_values(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.spool.SEGMENT_BYTES", 500)
    assert spool.latest_steps() == 0
    for first in range(0, 100, 10):
        append(spool, first, 10)
    assert spool.latest_steps() == 99
    spool.append("log", 1, b'[{"message":"%s","agent_steps":900}]' % (b"x" * 480))
    assert spool.latest_steps() == 99
    spool.append("episodes", 1, b'[{"agent_steps":120,"return":1.0,"length":1}]')
    assert spool.latest_steps() == 120
    while (request := spool.next()) is not None:
        spool.confirm(request, stored=True)
    assert spool.latest_steps() == 0


@pytest.mark.service
@pytest.mark.parametrize("rewind_to", [None, 20])
def test_resumed_run_counts_from_what_its_killed_script_has_not_sent(
    target: Target, rewind_to: int | None
) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        run.log({"loss/policy": 50.0}, agent_steps=50)
    left = Spool.create(Manifest(new_ulid(), target.service.url, run.id, None, "left"))
    append(left, 51, 49)
    left.close()
    with callboard.init(id=run.id, rewind_to=rewind_to) as resumed:
        assert resumed.agent_steps == (99 if rewind_to is None else 20)
        resumed.log({"loss/policy": 0.0}, agent_steps=resumed.agent_steps + 1)
    assert resumed.n_dropped == 0
    stored = [int(row["agent_steps"]) for row in target.points(run.id)["loss/policy"]]
    assert stored == ([*range(50, 101)] if rewind_to is None else [21])


@pytest.mark.service
def test_later_spool_of_a_run_waits_while_an_earlier_one_remains(target: Target, spools: Path) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        pass
    with callboard.init(algorithm="a", environment="e") as other:
        pass
    sources = sorted(new_ulid() for _ in range(3))  # ids of the same millisecond have a random order
    for at, (source, run_id) in enumerate(zip(sources, (run.id, run.id, other.id), strict=True)):
        left = Spool.create(Manifest(source, target.service.url, run_id, None, "left"))
        append(left, 10 * at, 10)
        left.close()
    in_the_way = spools / sources[0] / "request.new"
    in_the_way.mkdir()
    done = callboard.sync()
    assert (done.n_spools, done.n_rows, done.n_remaining) == (1, 10, 2), "the spool of the other run is sent"
    assert done.problems[1] == f"run {run.id}: an earlier part of this run must be sent first"
    assert not target.points(run.id)
    in_the_way.rmdir()
    held = Spool.open(spools / sources[0])  # by another `sync`, for example
    assert held is not None
    done = callboard.sync()
    assert (done.n_rows, done.n_remaining) == (0, 1)
    assert done.problems == [f"run {run.id}: an earlier part of this run must be sent first"]
    held.close()
    done = callboard.sync()
    assert (done.n_spools, done.n_rows, done.n_dropped, done.n_remaining) == (2, 20, 0, 0)
    stored = [int(row["agent_steps"]) for row in target.points(run.id)["loss/policy"]]
    assert stored == [*range(20)]


def test_torn_frame_is_left_out(spool: Spool) -> None:
    append(spool, 0, 10)
    with (spool.folder / "00000001.log").open("ab") as file:
        file.write(b"\xff\0\0\0torn")
    spool.close()
    again = Spool.open(spool.folder)
    assert again is not None
    request = again.next()
    assert request is not None
    again.confirm(request, stored=True)
    assert (request.n_rows, again.next(), again.refusals()) == (10, None, {})
    again.close()


def test_full_spool_refuses_and_keeps_what_it_has(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    append(spool, 0, 10)
    monkeypatch.setattr("callboard.spool.MAX_SPOOL_BYTES", 700)
    with pytest.raises(OSError, match="full") as error:
        append(spool, 10, 100)
    assert error.value.errno == errno.ENOSPC
    request = spool.next()
    assert request is not None
    assert request.n_rows == 10


def test_spool_that_stays_full_drops_counts_and_never_raises_at_the_caller(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("callboard.spool.MAX_SPOOL_BYTES", 0)
    with callboard.init(algorithm="a", environment="e", url=NOBODY, token="t") as run:
        for step in range(100):
            run.log({"loss/policy": 1.0, "loss/value": 2.0}, agent_steps=step)
    assert run.dropped == {"the spool is full or cannot be written": 200}
    messages = [record.getMessage() for record in caplog.records]
    assert sum("dropped and counted" in message for message in messages) == 1, "once"


def test_buffer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.background.MAX_BUFFERED_ROWS", 100)
    monkeypatch.setattr("callboard.background.WRITE_INTERVAL_S", 3600.0)
    with callboard.init(algorithm="a", environment="e", url=NOBODY, token="t") as run:
        for step in range(1_000):
            run.log({"loss/policy": 1.0}, agent_steps=step)
        assert run.n_dropped == 900


@pytest.mark.service
def test_batch_whose_answer_was_lost_is_stored_once(target: Target, spool: Spool) -> None:
    transport = LosesAnswers(target)
    delivery = Delivery(spool, transport, lambda reason, n: pytest.fail(reason))
    append(spool, 0, 10)
    with pytest.raises(Unreachable):
        delivery.send()  # the run is created, and nobody knows
    assert delivery.send()
    append(spool, 10, 10)
    transport.losing = True
    with pytest.raises(Unreachable):
        delivery.send()
    append(spool, 20, 10)
    assert delivery.send()
    assert delivery.send()
    assert not delivery.send()
    [run] = target.runs()
    assert [float(row["value"]) for row in target.points(run["id"])["loss/policy"]] == [
        *map(float, range(30))
    ]
    transport.close()


@pytest.mark.service
def test_rows_after_those_of_a_restored_backup_reach_the_server(target: Target, spool: Spool) -> None:
    transport = Transport(find_server())
    run, _ = create_run(transport, spool.manifest)
    append(spool, 0, 10)
    request = spool.next()
    assert request is not None
    spool.confirm(request, stored=True)  # the server has forgotten it
    append(spool, 10, 10)
    delivery = Delivery(spool, transport, lambda reason, n: pytest.fail(reason))
    assert delivery.send()
    append(spool, 20, 10)
    assert delivery.send()
    assert [float(row["value"]) for row in target.points(run)["loss/policy"]] == [*map(float, range(10, 30))]
    transport.close()


@pytest.mark.service
def test_refused_batch_is_counted_and_does_not_stop_the_next(target: Target, spool: Spool) -> None:
    refused = []
    transport = Transport(find_server())
    delivery = Delivery(spool, transport, lambda reason, n: refused.append((reason, n)))
    append(spool, 0, 5)
    spool.append("log", 2, b'[{"time":"yesterday","level":"info","message":"x"}]')
    append(spool, 5, 5)
    while delivery.send():
        pass
    [(reason, n)] = refused
    assert n == delivery.delivered.n_refused == 2
    assert "time" in reason
    [run] = target.runs()
    assert len(target.points(run["id"])["loss/policy"]) == 10
    transport.close()


@pytest.mark.service
def test_counts_include_what_is_confirmed(
    target: Target, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who waits until nothing is waiting reads the counts next: the last line of the run's log has them.
    transport = Transport(find_server())
    delivery = Delivery(spool, transport, lambda reason, n: None)
    append(spool, 0, 5)
    spool.append("log", 2, b'[{"time":"yesterday","level":"info","message":"x"}]')
    confirm, counts = spool.confirm, []

    def read_counts(request: Request, **options: Any) -> None:
        confirm(request, **options)
        counts.append((delivery.delivered.n_rows, delivery.delivered.n_refused))

    monkeypatch.setattr(spool, "confirm", read_counts)
    while delivery.send():
        pass
    assert counts == [(5, 0), (5, 2)]
    transport.close()


@pytest.mark.long
@pytest.mark.service
def test_killed_script_leaves_what_sync_sends_exactly_once(
    target: Target, intermittent: Intermittent, spools: Path
) -> None:
    offline = kill_when(lambda: any(path.stat().st_size > 100_000 for path in spools.glob("*/*.log")))
    assert offline > 0
    with intermittent.running():
        online = kill_when(lambda: any(run["agent_steps"] > 10_000 for run in target.runs()))
        assert online > 0
        command = [sys.executable, "-m", "callboard", "sync"]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("2 spools sent")
        assert list(spools.iterdir()) == []
        runs = target.runs()
        assert len(runs) == 2
        for run in runs:
            values = [float(row["value"]) for row in target.points(run["id"])["loss/policy"]]
            assert len(values) > 1_000
            assert values == [*map(float, range(len(values)))], "each once, in order, up to the kill"


@pytest.mark.service
@pytest.mark.long
def test_what_several_syncs_send_at_once_is_stored_once(
    target: Target, intermittent: Intermittent, spools: Path
) -> None:
    for n_spools in (1, 2):
        kill_when(lambda n=n_spools: sum(log.stat().st_size > 100_000 for log in spools.glob("*/*.log")) == n)
    with intermittent.running():
        command = [sys.executable, "-m", "callboard", "sync"]
        syncs = [
            subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for _ in range(3)
        ]
        for sync in syncs:
            sync.communicate(timeout=PATIENCE_S)
        assert callboard.sync().n_remaining == 0
        assert list(spools.iterdir()) == []
        runs = target.runs()
        assert len(runs) == 2
        for run in runs:
            values = [float(row["value"]) for row in target.points(run["id"])["loss/policy"]]
            assert values == [*map(float, range(len(values)))], "each once, in order, up to the kill"


@pytest.mark.long
@pytest.mark.service
def test_everything_of_a_run_whose_scripts_are_killed_and_resumed_arrives_once_and_in_order(
    target: Target, intermittent: Intermittent, spools: Path, tmp_path: Path
) -> None:
    with intermittent.running(), callboard.init(algorithm="a", environment="e") as run:
        pass
    assert run.id is not None
    run_id = run.id

    def has_lines() -> bool:
        return any(b'["log",' in path.read_bytes() for path in newest(spools).glob("*.log"))

    spooled: list[dict[str, int]] = []
    for n in range(3):  # without a server: each leaves a spool that the next one cannot send
        kill_when(has_lines, RESUMES_AND_LOGS_FOR_EVER, run_id, str(n * 1_000_000))
        spooled.append(rows_of(newest(spools), tmp_path / str(n)))
        assert set(spooled[-1]) == {"points", "episodes", "log"}
    with intermittent.running():
        kill_when(
            lambda: target.run(run_id)["agent_steps"] > 3_000_500,
            RESUMES_AND_LOGS_FOR_EVER,
            run_id,
            "3000000",
        )
        done = callboard.sync()
        assert (done.problems, done.n_remaining, list(spools.iterdir())) == ([], 0, [])
    points = target.points(run_id)
    lines = [int(line.partition(" ")[2]) for line in target.lines(run_id) if line.startswith("at ")]
    for kind, step, values in (
        ("points", 1, [float(row["value"]) for row in points["loss/policy"]]),
        ("episodes", 50, [float(row["value"]) for row in points["rollout/episode_return"]]),
        ("log", 50, lines[:200]),
    ):
        wanted = [n * 1_000_000 + step * at for n, rows in enumerate(spooled) for at in range(rows[kind])]
        last = values[len(wanted) :]
        assert values[: len(wanted)] == wanted[: len(values)], kind
        assert last == [3_000_000 + step * at for at in range(len(last))], kind
    assert not any("dropped" in line for line in target.lines(run_id))


def newest(spools: Path) -> Path:
    """The spool of the latest process; its name sorts by time."""
    return max(spools.iterdir(), default=spools)


def environment() -> dict[str, str]:
    """Of a script that imports the client of this checkout."""
    return os.environ | {"PYTHONPATH": str(ROOT / "client")}


def kill_when(condition: Any, script: str = LOGS_FOR_EVER, *arguments: str) -> int:
    """Start a script that logs, and kill it once the condition holds; its process id."""
    command = [sys.executable, "-c", script, *arguments]
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            until(condition)
        finally:
            process.send_signal(signal.SIGKILL)
    return process.pid


class LosesAnswers(Transport):
    """Sends requests and loses the answers while `losing`."""

    def __init__(self, target: Target) -> None:
        super().__init__(find_server())
        self.losing = True

    def request(self, method: str, path: str, **options: Any) -> Any:
        """As it does, but without the answer the first time."""
        answer = super().request(method, path, **options)
        if self.losing:
            self.losing = False
            raise Unreachable("the answer was lost")
        return answer
