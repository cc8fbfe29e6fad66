"""`callboard import`: logs of other tools become runs of the real service, each point once."""

import gzip
import json
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from typer.testing import CliRunner, Result

from backend.analysis.metrics import tfevents
from callboard.errors import Unreachable
from callboard.imports import following, sending
from callboard.imports import rows as row_files
from callboard.imports.log import Column, Log, UnreadableLog
from callboard.imports.rows import TABLE_ENDINGS
from callboard.imports.sending import Options
from callboard.imports.table import ColumnMapping
from callboard.imports.tables import read as read_table
from callboard.imports.tensorboard import read
from callboard.transport import Transport, find_server
from callboard_cli.main import app
from tests.client.support import Proxy, Target

pytestmark = pytest.mark.service

Row = tuple[int, float]

CLEANRL = "CartPole-v1__ppo__7__1700000000"


def imported(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["import", *map(str, arguments)])


def rows(target: Target, run: str) -> dict[str, list[Row]]:
    """Agent steps and value of every point of a run, by metric."""
    return {
        metric: [(int(row["agent_steps"]), float(row["value"] or "nan")) for row in points]
        for metric, points in target.points(run).items()
    }


@pytest.fixture
def writers() -> Iterator[Any]:
    """Creates TensorBoard's own writers, which are closed at the end."""
    from torch.utils.tensorboard import SummaryWriter

    opened = []

    def create(folder: Path) -> Any:
        opened.append(SummaryWriter(str(folder)))
        return opened[-1]

    yield create
    for writer in opened:
        writer.close()


def events_file(folder: Path, at: float, points: list[Row], tag: str = "loss/policy") -> None:
    """An event file of a process that has started at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    data = tfevents.header(at)
    for n, (step, value) in enumerate(points):
        event = Event(wall_time=at + n, step=step, summary=Summary())
        event.summary.value.add(tag=tag, simple_value=value)
        data += tfevents.record(event.SerializeToString())
    (folder / f"events.out.tfevents.{int(at)}.host.1.0").write_bytes(data)


def test_event_files_become_runs_and_a_second_import_adds_what_is_new(
    target: Target, tmp_path: Path, writers: Any
) -> None:
    folder = tmp_path / "runs" / CLEANRL
    writer = writers(folder)
    writer.add_text(
        "hyperparameters", "|param|value|\n|-|-|\n|learning_rate|0.25|\n|env_id|other|\n|anneal|True|"
    )
    writer.add_text("note", "any *text*")
    for step in range(5):
        writer.add_scalar("charts/episodic_return", step / 2, 10 * step)
        writer.add_scalar("losses/value loss", float("nan") if step == 3 else step, 10 * step, new_style=True)
        writer.add_histogram("weights", np.ones(2), step)
    writer.add_scalar("losses/negative", 1.0, -5)
    writer.add_image("state", np.zeros((3, 4, 4), np.uint8), 2)
    writer.flush()
    hparams = writers(tmp_path / "runs" / "mine")
    hparams.add_scalar("a/b", 1.0, 3)
    hparams.add_hparams({"lr": 0.5, "net": "mlp", "n": 3}, {"hparam/score": 2.0}, run_name="1700000001.25")
    hparams.flush()

    first = imported("tensorboard", tmp_path / "runs", "--tag", "old", "--algorithm", "my_ppo")
    assert first.exit_code == 0, first.output
    assert "2 runs, 12 points" in first.output
    assert "not kept: points with a step below 0" in first.output
    mine, cleanrl = sorted(target.runs(), key=lambda run: str(run["name"]), reverse=True)
    assert (cleanrl["name"], cleanrl["state"], cleanrl["origin"]) == (CLEANRL, "finished", "external")
    assert (cleanrl["environment"], cleanrl["algorithm"], cleanrl["seed"]) == ("CartPole-v1", "my_ppo", 7)
    assert cleanrl["tags"] == ["old"]
    assert cleanrl["spec"]["config"] == {"learning_rate": 0.25, "env_id": "other", "anneal": True}
    assert mine["spec"]["config"] == {"lr": 0.5, "net": "mlp", "n": 3}
    assert rows(target, mine["id"]) == {"a/b": [(3, 1.0)], "hparam/score": [(0, 2.0)]}
    media = target.client.get(f"/api/v1/runs/{cleanrl['id']}/media").json()["items"]
    assert [(item["kind"], item["metric"], item["agent_steps"]) for item in media] == [
        ("histogram", "weights", [0, 1, 2, 3, 4]),
        ("image", "state", [2]),
    ]
    points = rows(target, cleanrl["id"])
    assert points["charts/episodic_return"] == [(10 * step, step / 2) for step in range(5)]
    assert [step for step, _ in points["losses/value loss"]] == [0, 10, 20, 30, 40]
    assert [value for _, value in points["losses/value loss"] if value == value] == [0, 1, 2, 4]
    assert target.lines(cleanrl["id"]).count("note: any *text*") == 1

    assert imported("tensorboard", tmp_path / "runs").output.count("unchanged") == 2
    writer.add_scalar("charts/episodic_return", 9.0, 50)
    writer.add_scalar("losses/new", 1.0, 50)
    writer.add_text("note", "another")
    writer.flush()
    later = imported("tensorboard", tmp_path / "runs")
    assert later.exit_code == 0, later.output
    assert "2 runs, 2 points" in later.output
    assert len(target.runs()) == 2
    points = rows(target, cleanrl["id"])
    assert points["charts/episodic_return"] == [*((10 * step, step / 2) for step in range(5)), (50, 9.0)]
    assert points["losses/new"] == [(50, 1.0)]
    lines = target.lines(cleanrl["id"])
    assert (lines.count("note: any *text*"), lines.count("note: another")) == (1, 1)


def test_values_of_add_scalars_are_metrics_of_their_training(
    target: Target, tmp_path: Path, writers: Any
) -> None:
    writer = writers(tmp_path / "a")
    for step in (1, 2):
        writer.add_scalar("x", 1, step)
        writer.add_scalars("losses/all", {"actor": step, "critic": 2.0 * step, "critic/q": 0.5}, step)
    events_file(tmp_path / "a" / "of_x" / "actor", 1e9, [(1, 5.0)], "of_x")  # as tensorboardX does
    events_file(tmp_path / "a" / "x_other", 1e9, [(1, 5.0)])  # another training
    writer.close()
    done = imported("tensorboard", tmp_path)
    assert done.exit_code == 0, done.output
    assert {run["name"] for run in target.runs()} == {"a", "a/x_other"}
    [run] = [run for run in target.runs() if run["name"] == "a"]
    assert rows(target, run["id"]) == {
        "x": [(1, 1.0), (2, 1.0)],
        "losses/all/actor": [(1, 1.0), (2, 2.0)],
        "losses/all/critic": [(1, 2.0), (2, 4.0)],
        "losses/all/critic/q": [(1, 0.5), (2, 0.5)],
        "of_x/actor": [(1, 5.0)],
    }
    assert imported("tensorboard", tmp_path).output.count("unchanged") == 2


def test_later_file_that_begins_earlier_replaces_points_but_not_those_of_an_import(
    target: Target, tmp_path: Path
) -> None:
    events_file(tmp_path / "a", 1e9, [(0, 0.0), (10, 1.0), (20, 2.0)])
    events_file(tmp_path / "a", 1e9 + 100, [(10, 5.0), (20, 6.0), (15, 7.0)])
    done = imported("tensorboard", tmp_path / "a")
    assert "points that a later file replaces (2)" in done.output
    assert "not kept: points whose step decreases" not in done.output
    [run] = target.runs()
    assert rows(target, run["id"]) == {"loss/policy": [(0, 0.0), (10, 5.0), (15, 7.0), (20, 6.0)]}
    events_file(tmp_path / "a", 1e9 + 200, [(10, 8.0)])
    again = imported("tensorboard", tmp_path / "a")
    assert again.exit_code == 1
    assert "the log has changed since" in again.output
    assert rows(target, run["id"])["loss/policy"][1:] == [(10, 5.0), (15, 7.0), (20, 6.0)], "nothing is mixed"


def test_torn_and_damaged_files_are_read_as_far_as_they_can_be(target: Target, tmp_path: Path) -> None:
    events_file(tmp_path / "torn", 1e9, [(1, 1.0), (2, 2.0)])
    [torn] = (tmp_path / "torn").iterdir()
    torn.write_bytes(torn.read_bytes()[:-3])
    events_file(tmp_path / "damaged", 1e9, [(1, 1.0)])
    [damaged] = (tmp_path / "damaged").iterdir()
    damaged.write_bytes(damaged.read_bytes() + tfevents.record(b"\xff" * 20))
    odd = Event(wall_time=1e300, step=1, summary=Summary())
    value = odd.summary.value.add(tag="hyperparameters/text_summary")
    value.metadata.plugin_data.plugin_name = "text"
    value.tensor.string_val.append(b"|param|value|\n|-|-|\n|seed|nan|\n|x|\xff|")
    note = odd.summary.value.add(tag="note", tensor=value.tensor)
    note.metadata.plugin_data.plugin_name = "text"
    odd.summary.value.add(tag="tensor").tensor.dtype = 99
    for n_elements in (10**9, 2**60):  # of one value: the others would be filled up
        huge = odd.summary.value.add(tag="tensor").tensor
        huge.dtype = 1
        huge.float_val.append(1.0)
        huge.tensor_shape.dim.add(size=n_elements)
    torn.write_bytes(tfevents.record(odd.SerializeToString()) + torn.read_bytes())
    done = imported("tensorboard", tmp_path)
    assert done.exit_code == 0, done.output
    assert "not kept: tensors" in done.output
    assert f"not kept: the rest of {damaged.name}, which cannot be read (DecodeError)" in done.output
    assert f"not kept: the end of {torn.name}, which is not complete" in done.output
    assert [rows(target, run["id"]) for run in target.runs()] == [{"loss/policy": [(1, 1.0)]}] * 2


def test_programs_that_write_at_the_same_time_lose_nothing(target: Target, tmp_path: Path) -> None:
    train, evaluate = (
        [(2 * at, float(at)) for at in range(50)],
        [(2 * at + 1, -float(at)) for at in range(50)],
    )
    events_file(tmp_path / "a", 1e9, train)
    events_file(tmp_path / "a", 1e9 + 1, evaluate)
    first, second = sorted((tmp_path / "a").iterdir())
    (tmp_path / "a" / f"{first.name}.copy").write_bytes(first.read_bytes())
    compressed = second.with_name(f"{second.name}.gz")
    compressed.write_bytes(gzip.compress(second.read_bytes()))
    second.unlink()
    done = imported("tensorboard", tmp_path)
    assert done.exit_code == 0, done.output
    assert done.output.count("not kept") == 1
    assert f"not kept: {first.name}.copy, a copy of another file" in done.output
    [run] = target.runs()
    assert rows(target, run["id"]) == {"loss/policy": sorted(train + evaluate)}
    assert "unchanged" in imported("tensorboard", tmp_path).output


def test_later_files_of_add_scalars_replace_points_too(tmp_path: Path) -> None:
    for start, value in ((1e9, 1.0), (1e9 + 100, 5.0)):
        events_file(tmp_path / "a", start, [(10, value), (20, value)])
        events_file(tmp_path / "a" / "loss_train", start + 1, [(10, value), (20, value)], tag="loss")
    [log] = read(tmp_path / "a")
    assert {name: list(column.value) for name, column in log.series.items()} == {
        "loss/policy": [5.0, 5.0],
        "loss/train": [5.0, 5.0],
    }


def test_flipped_byte_is_never_imported(target: Target, tmp_path: Path) -> None:
    points = [(step, step / 2) for step in range(1, 40)]
    events_file(tmp_path / "whole", 1e9, points)
    [whole] = (tmp_path / "whole").iterdir()
    content = whole.read_bytes()
    places = random.Random(1).sample(range(len(content)), 60)
    for at in places:
        flipped = bytearray(content)
        flipped[at] ^= 0x40
        whole.write_bytes(flipped)
        [log] = read(tmp_path / "whole")
        column = log.series.get("loss/policy", Column())
        kept = list(zip(column.agent_steps, column.value, strict=True))
        assert set(kept) < set(points) or at < len(tfevents.header(1e9))
        assert set(kept) <= set(points)
        assert sum(log.not_kept.values()) == 1


def test_interrupted_import_continues_and_stores_each_point_once(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.imports.sending.MAX_BATCH", 30)
    monkeypatch.setattr("callboard.imports.sending.TRIES", 1)
    folder = tmp_path / "a"
    events_file(folder, 1e9, [(step, float(step)) for step in range(100)])
    events_file(folder, 1e9 + 500, [(step, -float(step)) for step in range(50)], tag="loss/value")
    n_requests = 0
    losing_at = 0
    request = Transport.request

    def lose_answer(self: Transport, *arguments: Any, **options: Any) -> Any:
        nonlocal n_requests
        n_requests += 1
        answer = request(self, *arguments, **options)
        if n_requests == losing_at:
            raise Unreachable("the answer was lost")
        return answer

    monkeypatch.setattr(Transport, "request", lose_answer)
    for losing_at in (2, 5, 5, 5, 0):
        n_requests = 0
        done = imported("tensorboard", tmp_path)
        assert done.exit_code == (1 if losing_at else 0), done.output
    [run] = target.runs()
    assert run["state"] == "finished"
    assert rows(target, run["id"]) == {
        "loss/policy": [(step, float(step)) for step in range(100)],
        "loss/value": [(step, -float(step)) for step in range(50)],
    }


def test_refused_log_leaves_no_run(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events_file(tmp_path / "a", 1e9, [(step, 1.0) for step in range(10_001)])
    events_file(tmp_path / "b", 1e9, [(1, 1.0)])
    refused = imported("tensorboard", tmp_path, "--group", "g" * 201)
    assert (refused.exit_code, target.runs()) == (1, [])
    assert "group" in refused.output
    monkeypatch.setattr("callboard.imports.sending.MAX_BATCH", 20_000)
    done = imported("tensorboard", tmp_path, "--json")
    assert done.exit_code == 1
    a, b = (json.loads(line) for line in done.stdout.splitlines())
    assert (a["run"], a["points"], b["problem"]) == (None, 0, None)
    assert "10,000" in a["problem"]
    assert [run["id"] for run in target.runs()] == [b["run"]], "the other log is imported"


def test_tables_are_mapped_and_unmapped_columns_are_named(target: Target, tmp_path: Path) -> None:
    table = tmp_path / "progress.csv"
    table.write_text(
        "seed,global_step,seconds,r,loss,note\n"
        "1,10,0.5,20,0.5,a\n2,10,0.6,21,,b\n1,20,1.5,22.5,bad,c\n1,x,2,1,1,d\n"
    )
    arguments = ["csv", table, "--environment", "CartPole-v1", "--algorithm", "mine", "--run", "seed"]
    mapping = [
        "--metric",
        "r=rollout/episode_return",
        "--metric",
        "loss=loss/policy",
        "--wall-time",
        "seconds",
    ]
    done = imported(*arguments, *mapping)
    assert done.exit_code == 0, done.output
    first, second = sorted(target.runs(), key=lambda run: str(run["name"]))
    assert (first["name"], second["name"]) == ("progress 1", "progress 2")
    assert (first["environment"], first["algorithm"]) == ("CartPole-v1", "mine")
    assert rows(target, first["id"]) == {
        "rollout/episode_return": [(10, 20.0), (20, 22.5)],
        "loss/policy": [(10, 0.5)],
    }
    assert [float(row["wall_time_s"]) for row in target.points(first["id"])["rollout/episode_return"]] == [
        0.5,
        1.5,
    ]
    assert rows(target, second["id"]) == {"rollout/episode_return": [(10, 21.0)]}
    for problem in (
        'not kept: column "note" (2)',
        'not kept: rows without a whole number in column "global_step"',
        'not kept: cells that are not numbers in column "loss"',
        'not kept: column "loss", which has no numbers',
    ):
        assert problem in done.output
    with table.open("a") as file:
        file.write("2,20,1.0,23,0.25,e\n")
    assert "2 runs, 2 points" in imported(*arguments, *mapping).output
    assert rows(target, second["id"]) == {
        "rollout/episode_return": [(10, 21.0), (20, 23.0)],
        "loss/policy": [(20, 0.25)],
    }

    parquet = tmp_path / "b.parquet"
    pq.write_table(pa.table({"step": [1, 2, 3], "x": [0.5, None, 1.5], "name": ["a", "b", "c"]}), parquet)
    done = imported("csv", parquet)
    assert done.exit_code == 0, done.output
    [run] = [run for run in target.runs() if run["name"] == "b"]
    assert rows(target, run["id"]) == {"x": [(1, 0.5), (3, 1.5)]}
    assert (run["environment"], run["algorithm"]) == ("unknown", "unknown")


def test_lines_texts_and_chunks_are_bounded_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_files, "_MAX_LINE_CHARACTERS", 50)
    monkeypatch.setattr(row_files, "_MAX_TEXT_CHARACTERS", 10)
    long, quoted, parquet = (tmp_path / name for name in ("a.csv", "b.csv", "c.parquet"))
    with gzip.open(long, "wt") as file:
        file.write("step,x\n1,2\n" + "3" * 100 + "\n")
    with pytest.raises(UnreadableLog, match="a line of over 50 characters"):
        list(row_files.read_rows(long).rows)
    quoted.write_text('step,x\n1,"\n' + "2,3\n" * 100)
    table = row_files.read_rows(quoted)
    assert [row["step"] for row in table.rows] == ["1"] + ["2"] * 100
    columns = {"step": [1] * 100, "name": ["x" * 1_000] * 100, "list": [[1]] * 100, "bytes": [b"x"] * 100}
    pq.write_table(pa.table(columns), parquet)
    unread = {"list": None, "bytes": None}
    assert list(row_files.read_rows(parquet).rows) == [{"step": 1, "name": "x" * 10} | unread] * 100
    monkeypatch.setattr(row_files, "_MAX_CHUNK_BYTES", 100)
    with pytest.raises(UnreadableLog, match="in one row group"):
        list(row_files.read_rows(parquet).rows)


def test_unreadable_input_prints_one_line_and_changes_nothing(target: Target, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "step.csv").write_text("step,x\n")
    (tmp_path / "a.parquet").write_text("no Parquet")
    (tmp_path / "binary.csv").write_bytes(b"step,x\n\xff\xfe,1\n")
    for arguments, message in (
        (["tensorboard", tmp_path], "no event files"),
        (["tensorboard", tmp_path / "none"], "no such file or folder"),
        (
            ["csv", tmp_path / "a.csv"],
            "no column of agent steps was recognised; name it with --step. Columns: x, y",
        ),
        (["csv", tmp_path / "a.csv", "--step", "z"], '--step: no column "z"'),
        (["csv", tmp_path / "a.csv", "--step", "x", "--run", "z"], '--run: no column "z"'),
        (["csv", tmp_path / "a.csv", "--step", "x", "--metric", "z=a/b"], '--metric: no column "z"'),
        (["csv", tmp_path / "a.csv", "--metric", "x="], "--metric: must be COLUMN=NAME"),
        (["csv", tmp_path / "empty.csv"], "it is empty"),
        (["csv", tmp_path / "step.csv"], "the table has no rows"),
        (["csv", tmp_path / "a.parquet"], "a.parquet"),
        (["csv", tmp_path / "binary.csv"], "binary.csv"),
    ):
        done = imported(*arguments)
        assert done.exit_code == 2, (arguments, done.output)
        assert message in done.output
        assert len(done.output.splitlines()) == 1
    assert target.runs() == []


@pytest.mark.benchmark
def test_200_runs_are_imported_within_a_minute(target: Target, tmp_path: Path) -> None:
    steps = np.arange(1_000, dtype="<i8") * 100
    for n in range(200):
        folder = tmp_path / f"CartPole-v1__ppo__{n}__1700000000"
        folder.mkdir()
        data = tfevents.header(1e9)
        for metric in ("charts/episodic_return", "losses/policy_loss", "losses/value_loss", "charts/SPS"):
            data += tfevents.scalars(metric, 1e9 + steps / 1000, steps, np.random.rand(len(steps)))
        (folder / "events.out.tfevents.1000000000.host.1.0").write_bytes(data)
    start = time.monotonic()
    done = imported("tensorboard", tmp_path)
    seconds = time.monotonic() - start
    print(f"200 runs, 800,000 points: {seconds:.1f} s")  # noqa: T201
    assert "200 runs, 800,000 points" in done.output
    assert seconds < 60


def test_seed_environment_and_algorithm_come_from_the_settings_if_nothing_else_names_them() -> None:
    log = Log("a", "a")
    for seed in (float("nan"), float("inf"), 0.5, -1):
        log.describe_by_config({"seed": seed})
        assert log.seed is None
    log.describe_by_config({"env_id": "Pong", "exp_name": "dqn", "seed": 3, "lr": 0.1})
    log.describe_by_config({"environment": "Other", "seed": 4})
    assert (log.environment, log.algorithm, log.seed) == ("Pong", "dqn", 4)
    log.environment = "Pong-v5"
    for environment in ("Alien-v5", "Xpong-v5", "ALE/Pong-v5", "ALE/Alien-v5"):
        log.describe_by_config({"env_id": environment})
    assert log.environment == "ALE/Pong-v5", "the id with its namespace, which a folder's name lacks"
    named = Log("a__dqn__5__1", "a", seed=5)
    named.describe_by_config({"seed": 6})
    assert named.seed == 5


def test_requests_of_an_import_have_less_than_a_million_bytes(
    target: Target, proxy: Proxy, tmp_path: Path
) -> None:
    names = [f"{at:04}" + "\N{GRINNING FACE}" * 190 for at in range(1_000)]  # twelve bytes each in JSON
    table = tmp_path / "progress.csv"
    lines = [",".join(["step", *names])] + [",".join([str(step), *["0.5"] * len(names)]) for step in range(2)]
    table.write_text("\n".join(lines))
    done = imported("csv", table, "--step", "step", "--environment", "e", "--algorithm", "a")
    assert done.exit_code == 0, done.output
    [run] = target.runs()
    series = target.client.get(f"/api/v1/runs/{run['id']}/series").json()["items"]
    assert [row["n_points"] for row in series] == [2] * len(names)
    assert 500_000 < proxy.largest < 1_000_000


def test_import_that_replaces_another_stays_though_that_cannot_be_deleted(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("step,x\n1,2\n3,4\n")
    first = imported("csv", path, "--step", "step")
    assert first.exit_code == 0, first.output

    [earlier] = target.runs()
    delete = sending._delete  # noqa: SLF001

    def delete_others(transport: Transport, run: str) -> None:
        if run == earlier["id"]:
            raise ValueError("it cannot be deleted now")
        delete(transport, run)

    with monkeypatch.context() as patch:
        patch.setattr(sending, "_delete", delete_others)
        second = imported("csv", path, "--step", "step", "--algorithm", "b")
    assert "it cannot be deleted now" in second.output
    assert sorted(run["algorithm"] for run in target.runs()) == ["b", "unknown"]
    third = imported("csv", path, "--step", "step", "--algorithm", "b")
    assert third.exit_code == 0, third.output
    [run] = target.runs()
    assert rows(target, run["id"]) == {"x": [(1, 2.0), (3, 4.0)]}


def test_followed_path_that_cannot_be_read_does_not_hold_up_the_others(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it end their runs, which have a message at each look."""
    (tmp_path / "a.csv").write_text("step,x\n1,2\n")
    (tmp_path / "b.csv").write_text("step,x\n3,4\n")
    looks: list[list[str]] = []
    kept: list[str] = []

    def read_logs(path: Path) -> Iterator[Log]:
        if path.stem == "a":
            looks.append([run["state"] for run in target.runs()])
            if len(looks) == 3:
                end: Any = signal.getsignal(signal.SIGINT)
                end(signal.SIGINT, None)  # a signal would be the reason of runs that end in this process next
            raise OSError("a.csv is locked")
        yield from read_table(path, ColumnMapping(), TABLE_ENDINGS)

    monkeypatch.setattr(following, "INTERVAL_S", 0.01)
    monkeypatch.setattr(following, "keep_running", lambda _, run: kept.append(run))
    transport = Transport(find_server())
    try:
        paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
        done = following.follow_paths(paths, read_logs, transport, Options({}), lambda imported: None)
    finally:
        transport.close()
    [run] = target.runs()
    assert looks[:3] == [[], ["running"], ["running"]]
    assert kept == [run["id"]] * 2
    assert (rows(target, run["id"]), run["state"]) == ({"x": [(3, 4.0)]}, "finished")
    assert [imported.problem is None for imported in done] == [False, True]


def test_followed_files_of_one_name_are_runs_that_are_all_kept_running(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / folder / "progress.csv" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("step,x\n1,2\n")
    n_looks = 0
    kept: list[str] = []

    def keep(_: object, run: str) -> None:
        kept.append(run)
        if len(kept) == 4:
            end: Any = signal.getsignal(signal.SIGINT)
            end(signal.SIGINT, None)

    def read_logs(path: Path) -> Iterator[Log]:
        nonlocal n_looks
        n_looks += 1
        assert n_looks <= 4, "twice at the beginning, twice at the end"
        yield from read_table(path, ColumnMapping(), TABLE_ENDINGS)

    monkeypatch.setattr(following, "INTERVAL_S", 0.01)
    monkeypatch.setattr(following, "keep_running", keep)
    transport = Transport(find_server())
    try:
        following.follow_paths(paths, read_logs, transport, Options({}), lambda imported: None)
    finally:
        transport.close()
    ids = {run["id"] for run in target.runs()}
    assert len(ids) == 2
    assert set(kept) == ids
