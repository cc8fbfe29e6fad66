"""Odd files of other tools: what is not imported is named, and the rest is imported.

The laws: of the values in a file, those of the log and those that are named are all; no two names become one;
whatever is wrong with one file, the others are read.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from callboard.imports.log import Log, UnreadableLog
from callboard.imports.rows import JSON_ENDINGS, TABLE_ENDINGS
from callboard.imports.sending import Options, send
from callboard.imports.table import ColumnMapping
from callboard.imports.tables import read
from callboard.transport import Server, Transport
from tests.client.support import Target
from tests.client.test_imports import imported

pytestmark = pytest.mark.long


def read_file(path: Path, content: str) -> Log:
    path.write_text(content)
    [log] = read(path, ColumnMapping(), JSON_ENDINGS if path.suffix == ".jsonl" else TABLE_ENDINGS)
    return log


def points(log: Log) -> dict[str, list[tuple[int, float]]]:
    return {
        name: [*zip(column.agent_steps, column.value, strict=True)] for name, column in log.series.items()
    }


NAMES: list[list[tuple[dict[str, Any], list[float]]]] = [
    [({"a/b": 1, "a": {"b": 2}}, [1, 2])],
    [({"a": {"b": 2}, "a/b": 1}, [2, 1])],
    [({"a/b": 1}, [1]), ({"a": {"b": 2}}, [2])],
    [({"a": {"b/c": 1}, "a/b": {"c": 2}, "a/b/c": 3}, [1, 2, 3])],
    [({"config": 3}, [3])],
    [({"config": 3}, [3]), ({"config": {"lr": 1}}, [])],
    [({"a": {"c": {"b": 1}}, "a/c": {"b": 2}}, [1, 2])],
    [({"": {"a": 1}, "/a": 2}, [1, 2])],
    [({"a\x01": 1, "a\x02": 2, "a\ufffd": 3}, [1, 2, 3])],
    [({"x" * 201: 1, "x" * 202: 2}, [1, 2])],
    [({"=a": 1, "'=a": 2}, [1, 2])],
    [({" a": 1, "a": 2, "a ": 3}, [1, 2, 3])],
]


@pytest.mark.parametrize("case", range(len(NAMES)))
def test_no_two_names_of_json_lines_become_one(tmp_path: Path, case: int) -> None:
    rows = [{"step": step} | row for step, (row, _) in enumerate(NAMES[case], 1)]
    log = read_file(tmp_path / "a.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    wanted = [(step, value) for step, (_, values) in enumerate(NAMES[case], 1) for value in values]
    assert sorted(point for series in points(log).values() for point in series) == sorted(wanted)
    assert len({*log.series}) == len({name for row, _ in NAMES[case] for name in json_names(row)})
    assert log.not_kept.total() == 0


def json_names(row: dict[str, Any]) -> list[tuple[str, ...]]:
    names = []
    for name, value in row.items():
        if isinstance(value, dict):
            names += [(name, *inner) for inner in json_names(value)] if name != "config" else []
        else:
            names.append((name,))
    return names


@pytest.mark.parametrize(
    ("name", "content", "n_points", "named"),
    [
        ("a.jsonl", '{"step":1,"r":1,"r":2}\n', 1, 'values of "r", which comes twice'),
        ("a.jsonl", '{"step":1,"r":{"s":1,"s":2,"s":3}}\n', 1, 'values of "s", which comes twice'),
        ("a.jsonl", '{"step":1,"r":1,"":5}\n', 1, "columns without a name"),
        ("a.csv", "step,r,\n1,2,3\n", 1, "columns without a name"),
        ("a.csv", ",step,r,\n0,1,2,3\n", 1, "columns without a name"),
        ("a.csv", "step,metric,value\n1,,2\n1,r,2\n", 1, "points without the name of a metric"),
        ("a.csv", "step,when,r\n1,2024_01_05,2\n", 1, 'column "when"'),
        ("a.csv", 'step,r\n1,1\n2,"2\n3,3\n4,4\n', 3, "quotes that are never closed"),
        ("a.csv", 'step,r\n1,1\n2,"2\n3,3\n4,4', 3, "quotes that are never closed"),
        ("a.csv", 'step,r\n1,1\n2,"2\n3,3\n4,"4\n5,5\n', 3, "quotes that are never closed"),
        ("a.csv", 'step,r\n"1,1\n2,2\n3,3\n', 2, "quotes that are never closed"),
        ("a.csv", 'step,t,r\n1,"a\nb",1\n2,"c,2\n3,d,3\n', 3, "quotes that are never closed"),
        ("a.csv", f"step,t,r\n1,{'x' * 200_000},2\n2,x,3\n", 2, 'column "t"'),
        ("a.csv", f'step,r\n0,"1\n{"1,2" * 50_000}\n1,1\n2,2\n', 3, "quotes that are never closed"),
        ("a.csv", '#{"t_start": 1}\nr,l,t\n1,10,1\n2,2.5,2\n', 4, "lengths of episodes with a fraction"),
        ("a.csv", '#{"t_start": 1}\nr,l,t\n1,10,1\nx,20,2\n', 3, 'cells that are not numbers in column "r"'),
        ("a.csv", '#{"t_start": 1, "env_id": 5}\nr,l,t\n1,10,1\n', 2, "environments that are no texts"),
        (
            "a.csv",
            '#{"t_start": 1, "env_id": {"a": 1}}\nr,l,t\n1,10,1\n',
            2,
            "environments that are no texts",
        ),
    ],
)
def test_what_is_not_kept_of_a_file_is_named(
    tmp_path: Path, name: str, content: str, n_points: int, named: str
) -> None:
    log = read_file(tmp_path / name, content)
    assert log.n_points == n_points
    assert [what for what in log.not_kept if named in what]


@pytest.mark.parametrize(
    "content",
    [
        "# step,reward\n1,2\n2,3\n",
        "# made by numpy\n# step,reward\n1,2\n2,3\n",
        " step , reward \n 1 , 2 \n 2 , 3 \n",
        'step,"reward"\n1,"2"\n2,"3"\n',
        'step,reward,note\n1,2,"a\n""b"""\n2,3,"c,\n\nd"\n',
        'step,reward,size\n1,2,5" disk\n2,3,6" disk\n',
    ],
)
def test_odd_table_is_read(tmp_path: Path, content: str) -> None:
    log = read_file(tmp_path / "a.csv", content)
    assert points(log) == {"reward": [(1, 2.0), (2, 3.0)]}
    assert not [what for what in log.not_kept if "quotes" in what]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "it is empty"),
        ("a.csv", "\n \n", "it is empty"),
        ("a.json", '[{"step":1,"r":1}]', "it is a JSON array"),
        ("a.json", '{\n  "step": 1,\n  "r": 1\n}', "write each object on one line"),
    ],
)
def test_message_names_what_is_wrong_with_a_file(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    with pytest.raises(UnreadableLog, match=message):
        read_file(tmp_path / name, content)


@pytest.mark.service
def test_odd_file_does_not_end_the_import_of_the_others(target: Target, tmp_path: Path) -> None:
    good = '#{"t_start": 1.5, "env_id": "A"}\nr,l,t\n1.0,10,1\n'
    odd = {
        "a": '#{"t_start": 1.5, "env_id": 5}\nr,l,t\n1.0,10,1\n',
        "b": '#{"t_start": {"a": 1}, "env_id": {"a": [1]}}\nr,l,t\n1.0,10,1\n',
        "c": '#{"t_start": 1e400, "env_id": null}\nr,l,t\n1.0,1e400,1\n',
        "d": "",
        "e": "\x00\x00",
        "f": '#{"t_start": 1.5}\nr,l,t\n',
    }
    for name, content in (odd | {"z": good}).items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "monitor.csv").write_text(content)
    (tmp_path / "y").mkdir()
    (tmp_path / "y" / "monitor.csv").write_bytes(b"\xff\xff\xff")
    done = imported("csv", tmp_path)
    assert done.exit_code == 1
    assert "z" in {run["name"] for run in target.runs()}, done.output
    missing = imported("csv", tmp_path / "none.csv", tmp_path / "z")
    assert (missing.exit_code, "no such file or folder" in missing.output) == (1, True)
    assert "unchanged" in missing.output


@pytest.mark.parametrize("field", ["identity", "environment", "seed", "config", "lines"])
@pytest.mark.parametrize("value", [5, {"a": 1}, object(), 1e400])
@pytest.mark.service
def test_log_with_any_field_is_sent_or_has_a_problem(target: Target, field: str, value: Any) -> None:
    log = Log("odd", f"{field} {value!r:.20}")
    log.add("loss/value", 1, 0.0, 1.0)
    setattr(log, field, value)
    transport = Transport(Server(target.service.url, target.client.headers["Authorization"][7:]))
    done = send(log, transport, Options({}))
    transport.close()
    assert bool(done.run) is not bool(done.problem)
    assert len(target.runs()) == bool(done.run), "nothing is left half-imported"
