"""The law of logging: no object in any argument raises, what can be read arrives, and the counts add up."""

import decimal
import fractions
import functools
import io
import json
import math
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import callboard
from callboard.cleaning import as_number, as_steps, as_text
from callboard.config import flat_config
from callboard.limits import MAX_STEPS
from callboard.transport import Server, Transport, find_server
from tests.client.support import NOBODY, Target
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]

METHODS = (
    "__float__",
    "__index__",
    "__str__",
    "__repr__",
    "__bool__",
    "__len__",
    "__iter__",
    "__getitem__",
    "__getattr__",
    "__fspath__",
    "__array__",
    "keys",
    "items",
)


def hostile(names: frozenset[str], base: type = object) -> Any:
    """An object whose methods of these names raise, and which is equal to nothing without raising."""

    def fail(self: Any, *arguments: Any) -> Any:
        raise RuntimeError("hostile")

    methods: dict[str, Any] = dict.fromkeys(names, fail)
    return type("Hostile", (base,), methods | {"__eq__": fail, "__hash__": lambda self: 7})()


class Words(str):
    """A text with another text."""

    def __str__(self) -> str:
        raise RuntimeError("hostile")


numbers = st.one_of(
    st.floats(),
    st.integers(),
    st.integers(-(10**400), 10**400),
    st.booleans(),
    st.decimals(),
    st.fractions(),
    st.complex_numbers(),
)
arrays = st.one_of(
    st.floats(width=32).map(np.float32),
    st.floats(width=16).map(np.float16),
    st.integers(0, 2**64 - 1).map(np.uint64),
    st.lists(st.floats(), max_size=3).map(np.array),
    st.lists(st.integers(-9, 9), max_size=2).map(lambda rows: np.array([rows])),
    st.floats(-9, 9).map(torch.tensor),
    st.floats(-9, 9).map(lambda value: torch.tensor([value], requires_grad=True)),
    st.floats(-9, 9).map(lambda value: torch.tensor(value, dtype=torch.bfloat16)),
    st.just(torch.empty(3, device="meta")),
    st.just(torch.empty((), device="meta")),
    st.just(np.longdouble("1e400")),
    st.just(np.datetime64("2026-01-01")),
    st.just(np.array([None, 1], object)),
)
others = st.one_of(
    st.none(),
    st.text(),
    st.binary(),
    st.sampled_from(["1.5", "nan", "-Infinity", b"3", "", "\0", "\ud800", Words("7")]),
    st.sampled_from(
        [object, print, sys, iter([]), range(3), slice(1), Ellipsis, io.StringIO("x"), Path("/")]
    ),
    st.frozensets(st.sampled_from(METHODS)).map(hostile),
    st.frozensets(st.sampled_from(METHODS)).map(lambda names: hostile(names, float)),
    st.frozensets(st.sampled_from(METHODS)).map(lambda names: hostile(names, dict)),
)
anything = st.recursive(
    st.one_of(numbers, arrays, others),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.tuples(inner), st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=3,
)
names = st.one_of(
    st.text(max_size=9),
    st.text(min_size=195, max_size=400),
    st.integers(),
    st.none(),
    st.binary(),
    st.just(Words("a")),
)

law = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck), database=None)
thorough = settings(law, max_examples=300)


def n_read(run: callboard.ExternalRun) -> int:
    """Number of values that the client has logged or dropped. What the server drops, it drops later."""
    return run._background.n_logged + sum(run._tally.dropped.values())  # noqa: SLF001


@pytest.mark.service
@pytest.mark.timeout(600)
def test_any_object_in_any_argument_of_log_raises_nothing_and_the_counts_add_up(
    target: Target,
) -> None:
    n_logged, markers = 0, list[str]()
    with callboard.init(algorithm="a", environment="e") as run:

        @thorough
        @given(st.dictionaries(names, anything, max_size=3), anything, anything)
        def log(values: dict[Any, Any], agent_steps: Any, frames: Any) -> None:
            nonlocal n_logged
            marker = f"marker/m{len(markers):04}"
            markers.append(marker)
            run.log({**values, marker: 0.5}, agent_steps=agent_steps, frames=frames)
            n_logged += len(values) + 1

        @thorough
        @given(anything, anything)
        def log_anything(values: Any, agent_steps: Any) -> None:
            nonlocal n_logged
            before = n_read(run)
            run.log(values, agent_steps=agent_steps)
            n_logged += n_read(run) - before

        log()
        log_anything()
        assert run.flush(PATIENCE_S)
    points = target.points(run.id)
    assert all([float(row["value"]) for row in points[marker]] == [0.5] for marker in markers)
    assert sum(map(len, points.values())) + run.n_dropped == n_logged
    assert target.run(run.id)["state"] == "finished"


@pytest.mark.service
@pytest.mark.timeout(600)
def test_any_object_in_any_argument_of_other_methods_raises_nothing(target: Target, tmp_path: Path) -> None:
    n_episodes = 0
    path = tmp_path / "model.pt"
    path.write_bytes(b"parameters")
    frames = np.zeros((2, 16, 16, 3), np.uint8)
    with callboard.init(algorithm="a", environment="e") as run:
        writer = callboard.SummaryWriter(run=run)

        @thorough
        @given(st.integers(0, 10), anything, anything, anything)
        @example(8, ["a name that cannot be hashed"], "text", 1)
        def call(method: int, first: Any, second: Any, third: Any) -> None:
            nonlocal n_episodes
            calls: list[Callable[[], None]] = [
                lambda: run.episode(first, second, agent_steps=third),
                lambda: run.text(first, second, agent_steps=third, level=first),
                lambda: run.video(first, agent_steps=second, fps=third),
                lambda: run.video(frames, agent_steps=second, fps=third),
                lambda: run.checkpoint(first, agent_steps=second, score=third),
                lambda: run.checkpoint(path, agent_steps=second, score=third),
                lambda: writer.add_scalar(first, second, third),
                lambda: writer.add_scalars(first, second, third),
                lambda: writer.add_text(first, second, third),
                lambda: writer.add_hparams(first, second),
                lambda: writer.add_video(first, second, third),
            ]
            n_episodes += method == 0
            calls[method]()

        call()
        run.text("the last line")
        assert run.flush(PATIENCE_S)
    assert "the last line" in target.lines(run.id)
    points = target.points(run.id)
    with_return = {int(row["agent_steps"]) for row in points.get("rollout/episode_return", ())}
    assert n_episodes == 0 or with_return or run.n_dropped


@law
@given(anything)
def test_reading_raises_nothing_and_gives_what_the_server_accepts(value: Any) -> None:
    number, steps = as_number(value).value, as_steps(value).value
    assert number is None or type(number) is float
    assert steps is None or (type(steps) is int and 0 <= steps <= MAX_STEPS)
    assert type(as_text(value)) is str


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (True, 1.0),
        ("3.0", 3.0),
        (b" 3 ", 3.0),
        (2 + 0j, 2.0),
        (np.array([[5]]), 5.0),
        ([1.5], 1.5),
        (np.bool_(True), 1.0),
        (np.uint64(2**64 - 1), 2.0**64),
        (np.longdouble("1e400"), math.inf),
        (decimal.Decimal("0.1"), 0.1),
        (fractions.Fraction(1, 4), 0.25),
        (-(10**400), -math.inf),
        (torch.tensor(3.0, requires_grad=True), 3.0),
        (torch.tensor([1.5], dtype=torch.bfloat16), 1.5),
        (None, None),
        ("", None),
        ("x", None),
        (1 + 1j, None),
        (np.zeros(2), None),
        (torch.zeros(2), None),
        (torch.zeros((), device="meta"), None),
        (np.ma.masked, None),
        (np.ma.array([1.0], mask=[True]), None),
        (np.ma.array([1.5], mask=[False]), 1.5),
        (np.ma.array(2.5), 2.5),
        ("2024_01_05", None),
        (b"1_0", None),
        ([], None),
        ({}, None),
    ],
)
def test_what_can_be_read_as_a_number_is_that_number(value: Any, number: float | None) -> None:
    assert as_number(value).value == number


@pytest.mark.parametrize(
    ("value", "steps"),
    [
        (1e6, 1_000_000),
        (np.float64(3), 3),
        ("12", 12),
        (torch.tensor(7), 7),
        (1.9, 1),
        (MAX_STEPS, MAX_STEPS),
        (MAX_STEPS + 1, None),
        (np.uint64(2**63), None),
        (-1, None),
        (math.nan, None),
        (math.inf, None),
        (np.ma.array(5, mask=True), None),
        (np.ma.array(5), 5),
        ("1_0", None),
        (None, None),
        ("x", None),
    ],
)
def test_what_can_be_read_as_agent_steps_is_that_number(value: Any, steps: int | None) -> None:
    assert as_steps(value).value == steps


def test_masked_setting_has_no_value() -> None:
    settings = {
        "a": np.ma.masked,
        "b": np.ma.array(5, mask=True),
        "c": np.ma.array([1, 2], mask=[False, True]),
    }
    assert flat_config(settings).config == {"a": None, "b": None, "c": [1, None]}


@pytest.mark.service
def test_each_kind_is_reported_once_and_counted(target: Target, caplog: pytest.LogCaptureFixture) -> None:
    with callboard.init(algorithm="a", environment="e") as run:
        for step in range(1, 6):
            run.log({"loss/policy": step, "last_return": None, "text": "x"}, agent_steps=step)  # type: ignore[dict-item]
            run.log({"loss/value": step}, agent_steps=None)
            run.episode(None, 1)  # type: ignore[arg-type]
            run.episode(math.nan, 1)
            run.episode(1.0, math.nan)
            run.text("")
            run.text("line", level="loud")
        assert run.n_dropped == 10
        assert run.dropped == {"no number: None": 5, "no number: text": 5}
        assert run.n_changed == 25
    points = target.points(run.id)
    assert [float(row["value"]) for row in points["loss/policy"]] == [1, 2, 3, 4, 5]
    assert len(points["loss/value"]) == 5
    returns = [float(row["value"]) for row in points["rollout/episode_return"]]
    assert [value for value in returns if not math.isnan(value)] == [1.0] * 5
    assert len(returns) == 10
    assert len(points["rollout/episode_length"]) == 10
    stored = target.run(run.id)
    assert (stored["score"], stored["best_return"]) == (1.0, 1.0)
    assert target.lines(run.id).count("") == 5
    messages = [record.getMessage() for record in caplog.records if record.name == "callboard"]
    assert sum("reported once" in message for message in messages) == 7
    assert len(messages) == 7
    [line] = [line for line in target.lines(run.id) if "missing here" in line]
    assert "5: no number: None; 5: no number: text" in line


@pytest.mark.service
def test_logging_after_the_end_is_counted_and_raises_nothing(target: Target, tmp_path: Path) -> None:
    run = callboard.init(algorithm="a", environment="e")
    run.close("succeeded")
    run.log({"a/b": 1.0, "a/c": 2.0}, agent_steps=1)
    run.episode(1.0, 1)
    run.text("late")
    run.video(np.zeros((1, 16, 16, 3), np.uint8))
    run.checkpoint(tmp_path)
    assert run.dropped == {"the run is closed": 6}
    assert target.run(run.id)["state"] == "finished"


@pytest.mark.service
def test_values_that_are_not_finite_stay_apart_to_every_export(target: Target) -> None:
    values = [1.0, math.nan, math.inf, -math.inf, 2.0]
    n_rows = 100  # compressed in the database, and as few rows, which are not
    with callboard.init(algorithm="a", environment="e") as run:
        for step in range(n_rows):
            run.log(
                {"loss/policy": values[step % 5], "loss/few": values[step % 5]}
                if step < 5
                else {"loss/policy": values[step % 5]},
                agent_steps=step,
            )
    with callboard.connect() as client:
        series = client.run(str(run.id)).series("loss/policy", "loss/few").value
    answer = target.client.get(f"/api/v1/runs/{run.id}/export", params={"format": "parquet"})
    column = pq.read_table(io.BytesIO(answer.content)).sort_by("metric").column("value").to_pylist()
    text = target.client.get(f"/api/v1/runs/{run.id}/export", params={"format": "csv"}).text
    wanted = values + values * (n_rows // 5)
    assert sorted(map(repr, series.tolist())) == sorted(map(repr, wanted))
    assert sorted(map(repr, column)) == sorted(map(repr, wanted))
    rows = text.splitlines()
    assert [sum(word in row for row in rows) for word in (",nan,", ",inf,", ",-inf,")] == [21, 21, 21]


SETTINGS = [
    ({"CALLBOARD_TOKEN": "{token}\n"}, None),
    ({"CALLBOARD_TOKEN": " {token}"}, None),
    ({"CALLBOARD_TOKEN": '"{token}"'}, None),
    ({"CALLBOARD_TOKEN": "Bearer {token}"}, None),
    ({"CALLBOARD_TOKEN": "{token}\u00a0"}, None),
    ({"CALLBOARD_TOKEN": "{token} {token}"}, "CALLBOARD_TOKEN"),
    ({"CALLBOARD_TOKEN": "\u2013{token}"}, "CALLBOARD_TOKEN"),
    ({"CALLBOARD_URL": "{url}/"}, None),
    ({"CALLBOARD_URL": " {url}\n"}, None),
    ({"CALLBOARD_URL": "{url}/api/v1"}, None),
    ({"CALLBOARD_URL": "{url}/runs"}, None),
    ({"CALLBOARD_URL": "127.0.0.1:8642"}, "CALLBOARD_URL"),
    ({"CALLBOARD_URL": "http://127.0.0.1:99999"}, "CALLBOARD_URL"),
    ({"CALLBOARD_URL": "http://127.0.0.1:port"}, "CALLBOARD_URL"),
    ({"CALLBOARD_URL": "http://"}, "CALLBOARD_URL"),
    ({"CALLBOARD_URL": "http://a b:8642"}, "CALLBOARD_URL"),
    ({"CALLBOARD_URL": "http://me:secret@127.0.0.1"}, "CALLBOARD_URL"),
]


@pytest.mark.service
@pytest.mark.parametrize(("variables", "named"), SETTINGS)
def test_settings_are_stripped_or_named_in_one_sentence_without_the_secret(
    target: Target, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], named: str | None
) -> None:
    token = os.environ["CALLBOARD_TOKEN"]
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(url=target.service.url, token=token))
    if named is None:
        with callboard.init(algorithm="a", environment="e") as run:
            assert run.id is not None
        return
    with pytest.raises(callboard.NotConfigured, match=f"^{named}: ") as refused:
        callboard.init(algorithm="a", environment="e")
    message = str(refused.value)
    assert token not in message
    assert "secret" not in message
    assert "\n" not in message


@law
@given(
    st.dictionaries(
        st.sampled_from(
            ["name", "config", "seed", "group", "tags", "notes", "id", "rewind_to", "url", "token"]
        ),
        anything,
    )
)
def test_wrong_use_of_init_is_an_error_of_one_kind(arguments: dict[str, Any]) -> None:
    fields = {"algorithm": "a", "environment": "e", "url": NOBODY, "token": "t"} | arguments
    if not (isinstance(fields["url"], str) and fields["url"] == NOBODY):
        fields["token"] = None  # nothing is sent anywhere
        fields["url"] = arguments["url"] if not isinstance(arguments["url"], str) else "ftp://x"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("callboard.starting._start", lambda transport, manifest: transport.close())
        with suppress(ValueError):
            callboard.init(**fields)


@pytest.mark.parametrize(
    "variables",
    [
        {"ALL_PROXY": "socks5h://127.0.0.1:9"},
        {"all_proxy": "socks4://127.0.0.1:9"},
        {"HTTP_PROXY": "http://127.0.0.1:9"},
        {"SSL_CERT_FILE": "/none"},
    ],
)
@pytest.mark.service
def test_proxies_of_the_environment_do_not_keep_the_script_from_this_machine(
    target: Target, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with callboard.init(algorithm="a", environment="e") as run:
        assert run.id is not None
    with callboard.init(algorithm="a", environment="e", url="http://0.0.0.0:9") as other:
        other.close()
        assert other.id is None


def addresses_of_this_machine() -> list[str]:
    """The IPv4 addresses of its network interfaces."""
    named = [address for addresses in psutil.net_if_addrs().values() for address in addresses]
    return [address.address for address in named if address.family == socket.AF_INET]


def proxied(transport: Transport) -> list[str]:
    """The kinds of addresses that a transport asks a proxy for."""
    with closing(transport):
        mounts = transport._client._mounts  # noqa: SLF001 - httpx has no public name for it
        return [pattern.pattern for pattern in mounts]


def test_address_of_this_machine_is_never_asked_for_from_a_proxy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("CALLBOARD_HOME", str(tmp_path))
    monkeypatch.delenv("CALLBOARD_URL", raising=False)
    published = "http://lab-3.invalid:8642"
    assert proxied(Transport(find_server(published, "t"))) == ["http://"]
    (tmp_path / "up.json").write_text(json.dumps({"url": published}))
    own = [f"http://{host}:8642" for host in addresses_of_this_machine()]
    for url in (None, published, f"{published}/", *own, "http://127.0.0.2:1", "http://[::1]:1"):
        assert proxied(Transport(find_server(url, "t"))) == [], url
    assert proxied(Transport(find_server("http://192.0.2.1:8642", "t"))) == ["http://"]


@pytest.mark.parametrize(
    "variable", [("HTTP_PROXY", "bad://127.0.0.1:9"), ("ALL_PROXY", "socks4://x"), ("SSL_CERT_FILE", "/none")]
)
def test_proxy_that_cannot_be_used_for_another_machine_is_named_and_ignored(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, variable: tuple[str, str]
) -> None:
    monkeypatch.setenv(*variable)
    transport = Transport(Server("https://server.invalid", "t"))
    transport.close()
    [text] = caplog.messages
    assert variable[0] in text
    assert "cannot be used and is ignored: " in text


@pytest.mark.service
def test_without_a_home_the_spool_is_in_a_temporary_folder(tmp_path: Path) -> None:
    code = (
        "import os, callboard\n"
        "os.path.expanduser = lambda path: path\n"  # as for a user without an entry in /etc/passwd
        "run = callboard.init(algorithm='m', environment='e')\n"
        "run.log({'a/b': 1}, agent_steps=1)\n"
        "run.close(timeout_s=0)\n"
        "print(run.n_dropped, callboard.sync().n_remaining)\n"
    )
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "client"),
        "CALLBOARD_URL": NOBODY,
        "CALLBOARD_TOKEN": "t",
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "0 0\n"), done.stderr
    assert len(list(tmp_path.glob("callboard-spool-*/*/run.json"))) == 1


@pytest.mark.parametrize("kind", ["function", "method", "partial", "object"])
def test_error_of_a_signal_handler_passes_through_what_it_interrupts(kind: str) -> None:
    class Handler:
        def __call__(self, number: int, frame: Any, *_: Any) -> None:
            raise TimeoutError("preempted")

        def handle(self, number: int, frame: Any) -> None:
            raise TimeoutError("preempted")

    def function(number: int, frame: Any, *_: Any) -> None:
        raise TimeoutError("preempted")

    handlers: dict[str, Any] = {
        "function": function,
        "method": Handler().handle,
        "partial": functools.partial(function),
        "object": Handler(),
    }

    class Interrupted:
        def __float__(self) -> float:
            signal.raise_signal(signal.SIGUSR1)
            return 1.0

    before = signal.signal(signal.SIGUSR1, handlers[kind])
    try:
        with pytest.raises(TimeoutError, match="preempted"):
            as_number(Interrupted())
    finally:
        signal.signal(signal.SIGUSR1, before)
