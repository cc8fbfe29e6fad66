"""A foreign name or argument is used, or said once a run, or refused before training: none ends a training,
and none is swallowed."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import callboard
import callboard.wandb as wandb
from callboard.foreign import USED, Refused, use_of
from callboard.wandb.table import TABLE
from callboard.writer_table import TABLE as WRITER
from tests.client.support import Target
from tests.support.foreign_names import names_of

NAMES = Path(__file__).with_name("wandb_names.txt").read_text().split()
SKIPPED = frozenset(
    {"init", "finish", "join", "teardown", "Run.finish", "install", "run", "config", "summary"}
)
"""What starts or ends a run, and has tests of its own."""


@pytest.fixture(autouse=True)
def _without_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)  # W&B's folder `wandb` is in the current one
    for name in ("WANDB_MODE", "RANK", "LOCAL_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    yield
    wandb.finish()


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the client has said since the last call."""
    messages = [record.getMessage() for record in caplog.records if record.name == "callboard"]
    caplog.clear()
    return messages


def test_each_name_of_wandb_and_of_the_writer_is_declared() -> None:
    from torch.utils.tensorboard import SummaryWriter

    of_writer = names_of("", inspect.getmembers(SummaryWriter))
    of_writer += [f"SummaryWriter.{name}" for name in inspect.signature(SummaryWriter).parameters]
    assert len(NAMES) > 600
    assert len(of_writer) > 100
    assert [name for name in NAMES if use_of(TABLE, name) is None] == []
    assert [name for name in of_writer if use_of(WRITER, name) is None] == []


@pytest.mark.service
def test_no_name_of_wandb_raises_during_a_run_and_what_does_nothing_is_said_once(
    target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    run = wandb.init(algorithm="a", environment="e")
    ever = said(caplog)
    arguments: dict[str, list[str]] = {}
    for name in NAMES:
        owner, _, argument = name.rpartition(".")
        if owner and owner != "Run":
            arguments.setdefault(owner, []).append(argument)
    for name in sorted({name.removeprefix("Settings.") for name in NAMES} - {""}):
        if name in SKIPPED or "WANDB_" in name or "." in name.removeprefix("Run.") or name == "WandbCallback":
            continue
        called = getattr(run if name.startswith("Run.") else wandb, name.rpartition(".")[2])
        for _ in range(2):
            if callable(called) and name not in ("Run", "Config", "AlertLevel"):
                given = dict.fromkeys(arguments.get(name, ()), "x")
                called(**given)
        ever += said(caplog)
        use = use_of(TABLE, name)
        if use and not name[0].isupper() and name not in ("plot_table",):
            assert any(use in message for message in ever), f"{name} is swallowed"
    assert len(ever) == len(set(ever)), "each is said once a run"
    media = {name: getattr(wandb, name)() for name in ("Audio", "Molecule", "Plotly", "Html")}
    wandb.log(media | {"loss": 1.0})
    assert len(said(caplog)) == len(media)
    wandb.finish()
    assert target.run(run.id)["state"] == "finished"


def test_what_needs_wandb_itself_is_refused_before_training(caplog: pytest.LogCaptureFixture) -> None:
    refused = [name for name in NAMES if "." not in name and isinstance(use_of(TABLE, name), Refused)]
    assert {"Api", "agent", "restore", "sweep", "use_artifact"} <= set(refused)
    for name in refused:
        with pytest.raises(wandb.UsageError, match=f"wandb.{name}: "):
            getattr(wandb, name)("x")


@pytest.mark.parametrize(
    "name",
    [name for name in NAMES if name.startswith(("init.", "Settings.", "WANDB_")) and name.count(".") < 2],
)
def test_each_argument_setting_and_variable_is_used_or_said(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")
    argument = name.rpartition(".")[2]
    value: Any = {
        "config": {"lr": 1},
        "tags": ["a"],
        "run_tags": ["a"],
        "settings": wandb.Settings(),
        "mode": "disabled",
    }.get(argument, "x")
    if name.startswith("WANDB_"):
        monkeypatch.setenv(name, "disabled" if name == "WANDB_MODE" else "x")
        wandb.init()
    elif name.startswith("Settings."):
        wandb.init(settings=wandb.Settings(**{argument: value}))
    else:
        wandb.init(**{argument: value})
    use = use_of(TABLE, name)
    messages = [message for message in said(caplog) if name in message]
    assert messages == ([] if use == USED else [f"callboard: wandb.{name}: {use}"])


@pytest.mark.service
def test_no_method_of_the_writer_raises(target: Target, caplog: pytest.LogCaptureFixture) -> None:
    from torch.utils.tensorboard import SummaryWriter

    samples = {
        "tag": "t",
        "main_tag": "m",
        "scalar_value": 1.0,
        "tag_scalar_dict": {"a": 1.0},
        "walltime": 1.0,
    }
    samples |= {"hparam_dict": {"lr": 1}, "metric_dict": {"m": 1.0}, "hparam_domain_discrete": {"lr": [1]}}
    samples |= {"vid_tensor": np.zeros((1, 2, 3, 16, 16), np.uint8), "text_string": "x", "fps": 4}
    with callboard.SummaryWriter("runs/a__b__1__2", max_queue=3, flush_secs=4, filename_suffix="x") as writer:
        assert len(said(caplog)) == 3
        for name, method in inspect.getmembers(SummaryWriter, callable):
            if name.startswith("_") or name == "close":
                continue
            parameters = [*inspect.signature(method).parameters][1:]
            for _ in range(2):
                getattr(writer, name)(**{argument: samples.get(argument) for argument in parameters})
            messages = said(caplog)
            assert len(messages) == len(set(messages)), name
            use = use_of(WRITER, name)
            if use:
                assert writer.n_not_kept[use.removesuffix(" are not kept")] >= 2
    assert target.run(writer.run.id)["spec"]["config"] == {"lr": 1}
