"""Names are stored as they are given, and no two names or configs become one."""

import csv
import io
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import backend.drawing.cells
import callboard
from backend.db import Run
from backend.runs.runs.external_spec import ExternalFields, external_spec
from backend.runs.runs.groups import group_key
from callboard.config import flat_config
from callboard.limits import MAX_CONFIG_TEXT
from callboard.names import Names, as_cell, of_cell
from tests.client.support import Target
from tests.client.test_imports import events_file, imported, rows

pytestmark = pytest.mark.long

CLIENT = Path(callboard.__file__).parents[1]
SIMILAR = [
    *("loss", "scalars/loss", "/loss", "loss/", "loss//x", "loss/x", "./x", "_/x", " loss", "loss "),
    *("acc@1", "acc#1", "loss [a]", "loss (a)", "loss_a", "train loss (%)", "train_loss_(%)", "Loss", "LOSS"),
    *(
        "奖励/平均",
        "奖励/最大",
        "损失",
        "école",
        "e\u0301cole",
        "İ",
        "i",
        "ß",
        "ss",
        "ﬁ",
        "fi",
        "a\u200db",
        "ab",
    ),
    *(
        'say "so"',
        "say 'so'",
        "back\\slash",
        "a,b",
        "a;b",
        "{a}",
        "[a]",
        "%{a}",
        "=1+1",
        "$.a",
        "*",
        "?",
        "#",
    ),
    *("charts/episodic_return", "rollout/episode_return", "x.best", "x/y.last", "config.lr", "metric.loss"),
    *(
        "👩\u200d👩\u200d👧",
        "عربى",
        "\u202ea",
        "1",
        "1.0",
        "-1",
        "none",
        "null",
        "NaN",
        "true",
        "long/" + "x" * 195,
    ),
]
PRINTABLE = st.text(min_size=1, max_size=200).filter(str.isprintable)


def logged_and_stored(target: Target, names: list[str]) -> None:
    with callboard.init(algorithm="a", environment="e", tags=[name[:50] for name in names[:50]]) as run:
        for at, name in enumerate(names):
            run.log({name: at + 0.5}, agent_steps=at)
        run.log({name: -at for at, name in enumerate(names)}, agent_steps=10_000)
    assert run.n_dropped == 0
    wanted = {name: [(at, at + 0.5), (10_000, -at)] for at, name in enumerate(names)}
    assert rows(target, str(run.id)) == wanted
    stored = target.client.get(f"/api/v1/runs/{run.id}/series").json()["items"]
    assert {series["metric"]: series["last_value"] for series in stored} == {
        name: -at for at, name in enumerate(names)
    }
    tags = target.client.get(f"/api/v1/runs/{run.id}").json()["tags"]
    assert sorted(tags) == sorted({name[:50] for name in names[:50]})
    with callboard.connect() as client:
        [read] = client.runs(f"id={run.id}")
        series = read.series(*names[:20])
    assert dict(zip(series.metric.tolist(), series.value.tolist(), strict=True)) == {
        name: -at for at, name in enumerate(names[:20])
    }


@pytest.mark.service
def test_series_of_different_names_come_back_with_their_own_values(target: Target) -> None:
    logged_and_stored(target, SIMILAR)


@pytest.mark.service
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PRINTABLE, min_size=2, max_size=100, unique=True))
def test_series_of_any_printable_names_come_back_with_their_own_values(
    target: Target, names: list[str]
) -> None:
    logged_and_stored(target, names)


@given(st.lists(st.text(max_size=400) | st.integers() | st.booleans(), unique_by=repr, min_size=2))
@example(["a\x00b", "a\x01b", "a\ufffdb", "", " "])
@example(["x" * 201, "x" * 202, Names().stored("x" * 201)])
@example([Names().stored("x" * 201), "x" * 201])
def test_no_two_names_are_stored_as_one(given_names: list[Any]) -> None:
    names = Names()
    stored = [names.stored(name) for name in given_names]
    assert len(set(stored)) == len(stored)
    assert [names.stored(name) for name in given_names] == stored
    assert all(0 < len(name) <= 200 for name in stored)
    assert all(
        kept == name
        for name, kept in zip(given_names, stored, strict=True)
        if isinstance(name, str)
        and name.isprintable()
        and 0 < len(name) <= 200
        and "~" not in name
        and not any(str(other) == name for other in given_names if not isinstance(other, str))
    )


FORMULAS = [
    "=1+1",
    "@SUM(A1)",
    '=HYPERLINK("http://x")',
    "+1",
    "-1+cmd",
    "\t=1",
    "\r=1",
    "-",
    "'=1",
    "''@",
    "\u00a0=1",
    "\ufe661+1",
    "'a",
    "a=1",
]


@given(st.text() | st.sampled_from(FORMULAS))
def test_no_cell_of_a_csv_file_is_a_formula_and_each_is_read_as_it_was(text: str) -> None:
    signs = ("=", "+", "-", "@", "\t", "\r", "\ufe66", "\uff1d")
    assert not as_cell(text).startswith(signs)
    assert not as_cell(text).lstrip(" \u00a0").startswith(signs)
    assert of_cell(as_cell(text)) == text
    assert (as_cell(text), of_cell(text)) == (
        backend.drawing.cells.as_cell(text),
        backend.drawing.cells.of_cell(text),
    )


@pytest.mark.service
def test_export_has_no_formula_and_is_imported_with_equal_names(target: Target, tmp_path: Path) -> None:
    names = [name for name in FORMULAS if name.isprintable()]
    with callboard.init("=1+1", algorithm="a", environment="e") as run:
        run.log({name: -float(at) for at, name in enumerate(names)}, agent_steps=1)
    answer = target.client.get("/api/v1/runs/export", params={"run": run.id, "format": "csv"})
    cells = [cell for row in csv.reader(io.StringIO(answer.text)) for cell in row]
    formulas = [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert {float(cell) for cell in formulas} == {-float(at) for at in range(1, len(names))} | {-0.0}
    with callboard.connect() as client:
        series = client.run(str(run.id)).series(*names)
    assert dict(zip(series.metric.tolist(), series.value.tolist(), strict=True)) == {
        name: -at for at, name in enumerate(names)
    }
    table = tmp_path / "table.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([["step", *map(as_cell, names)], [1, *range(len(names))]])
    done = imported("csv", table)
    assert done.exit_code == 0, done.output
    [other] = (run for run in target.runs() if run["name"] == "table")
    assert rows(target, other["id"]) == {name: [(1, at)] for at, name in enumerate(names)}


SAME = (
    *("name", "group", "tags", "algorithm", "environment", "config", "config_details", "seed"),
    *("seed_is_known", "seed_is_given", "return_metric", "step_unit"),
)


@pytest.mark.service
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_exported_runs_are_imported_as_the_same_runs(
    target: Target, tmp_path: Path, file_format: str
) -> None:
    arguments: list[dict[str, Any]] = [
        {"name": "'=same", "seed": 3, "step_unit": "iterations", "return_metric": "=a", "tags": ["x", "=y"]},
        {"name": "=same", "config": {"seed": 2**60, "net": {"n": 1}, "clip": math.inf}, "group": "'-g"},
        {"name": "none", "config": {"lr": 0.1}},
    ]
    ids = []
    for fields in arguments:
        with callboard.init(algorithm="mine", environment="e", **fields) as run:
            for step in range(3):
                run.log({"'=a": step, "=a": -step}, agent_steps=step, frames=4 * step)
        ids.append(run.id)
    before = {run["name"]: run for run in target.runs()}
    points = {name: rows(target, run["id"]) for name, run in before.items()}
    answer = target.client.get("/api/v1/runs/export", params={"run": ids, "format": file_format})
    for run_id in ids:
        target.client.delete(f"/api/v1/runs/{run_id}").raise_for_status()
    table = tmp_path / f"table.{file_format}"
    table.write_bytes(answer.content)
    done = imported("csv", table)
    assert done.exit_code == 0, done.output
    after = {run["name"]: run for run in target.runs()}
    assert {name: rows(target, run["id"]) for name, run in after.items()} == points
    for name, stored in after.items():
        assert {field: stored["spec"][field] for field in SAME} == {
            field: before[name]["spec"][field] for field in SAME
        }
        assert stored["frames"] == before[name]["frames"]
    assert after["none"]["frames"] == 8


@pytest.mark.service
def test_names_in_lines_of_json_keep_their_apostrophes(target: Target, tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text(
        "".join(
            json.dumps({"step": 1, "metric": metric, "value": at, "run": run}) + "\n"
            for run in ("'=r", "=r")
            for at, metric in enumerate(("'=a", "=a"))
        )
    )
    assert imported("jsonl", lines).exit_code == 0
    runs = {run["name"]: rows(target, run["id"]) for run in target.runs()}
    assert runs == {f"lines {run}": {"'=a": [(1, 0)], "=a": [(1, 1)]} for run in ("'=r", "=r")}


class Unit(Enum):
    """An enumeration, as libraries have them in lists of settings."""

    STEP = "step"
    EPISODE = "episode"


KEYS = st.sampled_from(
    ["a", "b", "a.b", ".", "", "a ", "学习率", "折扣率", "lr rate", "lr_rate", "x" * 101, 1, True]
)
VALUES: list[Any] = [
    *(None, True, False, 0, 1, 1.0, 1.5, -1, "", "1", "1.0", "True", "None", "NaN", math.nan, math.inf),
    *(2**70, str(2**70), [], {}, "[]", "{}", [1], ["1"], [True], [[1]], "[[1]]", [None], [math.nan]),
    *([4, Unit.STEP], [4, "Unit.STEP"], [4, Unit.EPISODE], [Path("a")], ["a"], ["NaN"], [int] * 20),
    *("x" * 2_000, "x" * 2_001, list(range(200)), [*range(199), 0], Path("a"), "a", b"a", int, abs),
]
CONFIGS = st.dictionaries(
    KEYS, st.recursive(st.sampled_from(VALUES), lambda inner: st.dictionaries(KEYS, inner, max_size=3))
)


def typed(value: Any) -> Any:
    """Equal for values that are equal as JSON, if JSON has them."""
    if isinstance(value, Mapping):
        return "dict", frozenset((typed(key), typed(item)) for key, item in value.items())
    if isinstance(value, list):
        return "list", *map(typed, value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return type(value).__name__, repr(value)


def key_of(config: Any, seed: int = 5) -> str:
    flat = flat_config(config)
    body: dict[str, Any] = {"origin": "external", "algorithm": "a", "environment": "e", "seed": seed}
    body |= {"config": flat.config, "config_details": flat.details}
    return group_key(Run(spec=external_spec(ExternalFields.model_validate(body))))


IN_A_PROCESS = """
import functools, json
from callboard.config import flat_config
from callboard.limits import MAX_CONFIG_TEXT

class Schedule:
    def __init__(self, rate):
        self.rate = rate
    def value(self, step):
        return self.rate * step

def constant(step):
    return 0.1

names = ["constant", "lambda", "method", "partial", "object", "class", "set"]
values = [constant, lambda step: step, Schedule(0.1).value, functools.partial(constant, 3), Schedule(0.1)]
settings = dict(zip(names, [*values, Schedule, {f"w{at}" for at in range(9)}]))
print(json.dumps(flat_config(settings), sort_keys=True))
"""


@pytest.mark.service
def test_five_processes_with_one_function_as_a_setting_are_one_group() -> None:
    texts = set()
    for seed in range(5):
        environment = {"PYTHONPATH": str(CLIENT), "PYTHONHASHSEED": str(seed + 1)}
        command = [sys.executable, "-c", IN_A_PROCESS]
        done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
        texts.add(done.stdout)
    assert len(texts) == 1
    [config, details] = json.loads(texts.pop())
    assert config["constant"] == "<function constant>"
    assert config["method"] == "<bound method Schedule.value of <__main__.Schedule object>>"
    assert details["constant"] == {"type": "function"}


class Unreadable:
    """An object without a text."""

    def __repr__(self) -> str:
        raise RuntimeError


def test_setting_that_is_not_json_is_its_repr_cut_with_a_mark() -> None:
    holder: list[Any] = [1]
    holder.append(holder)
    settings = {
        "train_freq": (4, Unit.STEP),
        "clip": [0.5, math.inf],
        "net": [Path("a"), [np.float32(0.5), {2, 1}], {"b": int}],
        "long": SimpleNamespace(text="x" * 5_000),
        "unreadable": Unreadable(),
        "holder": holder,
        "keys": [{1: 2, (3,): 4}],
        "array": np.array([1.5, 2.5]),
    }
    flat = flat_config(settings)
    long = flat.config.pop("long")
    assert flat.config == {
        "train_freq": [4, "<Unit.STEP: 'step'>"],
        "clip": [0.5, "Infinity"],
        "net": """["PosixPath('a')", [0.5, [1, 2]], {"b": "<class 'int'>"}]""",
        "unreadable": "Unreadable (RuntimeError)",
        "holder": "[1, [...]]",
        "keys": "[{1: 2, (3,): 4}]",
        "array": [1.5, 2.5],
    }
    assert flat.details["train_freq"] == {"type": '[null, "Unit"]'}
    assert long.startswith("namespace(text='xxx")
    assert re.search(r"xx… \(5,018 characters, SHA-256 [0-9a-f]{16}…\)$", long)
    assert len(long) == MAX_CONFIG_TEXT


@given(CONFIGS, CONFIGS)
@example({"a": [4, Unit.STEP]}, {"a": [4, "Unit.STEP"]})
@example({"a": [math.nan]}, {"a": ["NaN"]})
@example({"学习率": 0.1, "折扣率": 0.9}, {"学习率": 0.2, "折扣率": 0.9})
@example({"a": 1}, {"a": True})
@example({"a": 1}, {"a": "1"})
@example({"a": None}, {})
@example({"a": {}}, {})
@example({"a": {"b": 1}}, {"a.b": 1})
@example({"a": {"b": 1}, "a.b": 2}, {"a": {"b": 2}, "a.b": 1})
@example({1: 2, "1": 3}, {1: 3, "1": 2})
@example({"a": 1, "b": 2}, {"b": 2.0, "a": 1.0})
def test_runs_are_of_one_group_if_and_only_if_their_configs_are_equal(first: Any, other: Any) -> None:
    assert (key_of(first) == key_of(other)) == (typed(first) == typed(other))


@pytest.mark.parametrize(
    "setting",
    [lambda value: value, lambda value: {"b": value}, lambda value: [value]],
    ids=["itself", "nested", "in a list"],
)
def test_no_two_values_of_a_setting_are_of_one_group(setting: Callable[[Any], Any]) -> None:
    configs = [{"a": setting(value)} for value in VALUES]
    keys = [key_of(config) for config in configs]
    for (first, key), (other, other_key) in combinations(zip(configs, keys, strict=True), 2):
        assert (key == other_key) == (typed(first) == typed(other)), (first, other)


@pytest.mark.parametrize(
    ("names", "n_groups"),
    [
        (["seed"], 1),
        (["random_seed", "torch.manual_seed", "env.Seed"], 1),
        (["seed_offset"], 3),
        (["n_envs"], 3),
    ],
)
def test_settings_that_are_the_seed_do_not_divide_a_group(names: list[str], n_groups: int) -> None:
    configs = [{"lr": 0.1} | dict.fromkeys(names, seed) for seed in (1, 2, 3)]
    assert len({key_of(config, seed) for seed, config in zip((1, 2, 3), configs, strict=True)}) == n_groups


def test_seed_of_something_else_and_a_flag_divide_a_group() -> None:
    assert len({key_of({"data_seed": seed}, seed=7) for seed in (1, 2, 7)}) == 3
    assert key_of({"seed": True}, seed=1) != key_of({"seed": False}, seed=0)
    assert key_of({"env": {"seed": 1}, "lr": 1}, seed=1) == key_of({"env": {"seed": 2}, "lr": 1}, seed=2)
    assert key_of({"seed": "1"}, seed=1) == key_of({"seed": 2.0}, seed=2)


@pytest.mark.service
def test_imported_series_of_different_names_stay_different(target: Target, tmp_path: Path) -> None:
    names = [*SIMILAR, "long/" + "x" * 300 + "1", "long/" + "x" * 300 + "2"]
    for at, name in enumerate(names):
        events_file(tmp_path / "a", 1e9 + 10 * at, [(1, at + 0.5), (2, -at)], tag=name)
    done = imported("tensorboard", tmp_path / "a")
    assert done.exit_code == 0, done.output
    [run] = target.runs()
    points = rows(target, run["id"])
    assert len(points) == len(names)
    for at, name in enumerate(names[:-2]):
        assert points[name] == [(1, at + 0.5), (2, -at)]
    table = tmp_path / "table.csv"
    columns = [name for name in SIMILAR if '"' not in name]
    quoted = ",".join(f'"{name}"' for name in columns)
    table.write_text(f"step,{quoted}\n1,{','.join(map(str, range(len(columns))))}\n", "utf-8")
    done = imported("csv", table)
    assert done.exit_code == 0, done.output
    [run] = (run for run in target.runs() if run["name"] == "table")
    assert rows(target, run["id"]) == {name: [(1, at)] for at, name in enumerate(columns)}


@pytest.mark.service
def test_any_metric_and_setting_can_be_filtered_and_sorted_by(target: Target) -> None:
    ids = []
    for n in (1, 2):
        config = {name: float(n) for name in SIMILAR}
        with callboard.init(algorithm="a", environment="e", config=config) as run:
            run.log({name: float(n) for name in SIMILAR}, agent_steps=1)
        ids.append(run.id)
    fields = {field["name"]: field for field in target.client.get("/api/v1/runs/fields").json()["items"]}
    metrics = [name for name, field in fields.items() if field["origin"] == "metric"]
    settings_ = [f"config.{name}" for name in SIMILAR if len(name) <= 100]
    assert len(metrics) == len(SIMILAR)
    assert set(settings_) <= fields.keys()
    for name in [*metrics, *settings_]:
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        query = {"filter": f'"{quoted}">1.5', "sort": f"-{name}"}
        answer = target.client.get("/api/v1/runs", params=query)
        assert answer.status_code == 200, (name, answer.text)
        assert [run["id"] for run in answer.json()["items"]] == ids[1:], name
