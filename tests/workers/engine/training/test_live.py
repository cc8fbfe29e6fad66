"""What can be done to an engine that trains: change its settings, watch it play."""

import io
import json
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.container import InputContainer

from backend.specs.commands import COMMAND, ChangeSettings, SaveCheckpoint, Stop, Watch
from backend.specs.events import (
    AnyEvent,
    CheckpointSavedEvent,
    ReportEvent,
    SettingsChangedEvent,
    StartedEvent,
)
from backend.specs.run import parse_run_spec
from tests.support.engine_process import await_events, logged
from tests.support.frames import unpack_frame
from tests.support.waiting import PATIENCE_S
from tests.workers.engine.training.training_runs import only

pytestmark = pytest.mark.service


class Engine:
    """A real engine process and the supervisor's end of its socket pair."""

    def __init__(self, run_dir: Path, environment: str, **config: Any) -> None:
        spec = parse_run_spec(
            {
                "algorithm": "paac",
                "environment": environment,
                "stop": {"wall_time_s": 300},
                "config": {"n_e": 4, "evaluation_episodes": 0, **config},
            }
        )
        (run_dir / "spec.json").write_text(spec.model_dump_json())
        self.run_dir = run_dir
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE_S)
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "workers.engine",
                "train",
                str(run_dir),
                "--control-fd",
                str(theirs.fileno()),
            ],
            pass_fds=[theirs.fileno()],
        )
        theirs.close()

    def say(self, command: ChangeSettings | SaveCheckpoint | Stop | Watch) -> None:
        self.socket.send(COMMAND.dump_json(command) + b"\n")

    def events(self) -> list[AnyEvent]:
        return logged(self.run_dir)

    def wait_for(self, kind: type[Any], count: int = 1) -> list[Any]:
        events = await_events(self.process, self.run_dir, lambda events: len(only(kind, events)) >= count)
        return only(kind, events)

    def pictures_waiting(self) -> int:
        count = 0
        self.socket.setblocking(False)
        with suppress(BlockingIOError):
            while self.socket.recv(1 << 20):
                count += 1
        self.socket.setblocking(True)
        return count

    def stop(self) -> None:
        self.say(Stop())
        assert self.process.wait(timeout=PATIENCE_S) == 0
        self.socket.close()


@pytest.mark.long
@pytest.mark.parametrize("n_w", [1, 2])
def test_settings_change_while_training(tmp_path: Path, n_w: int) -> None:
    engine = Engine(tmp_path, "CartPole-v1", n_w=n_w)
    engine.say(ChangeSettings(version=1, changes={"learning_rate": 0.125, "beta": 0.5}))
    engine.say(ChangeSettings(version=2, changes={"n_e": 8}))
    engine.say(ChangeSettings(version=3, changes={"beta": -1}))
    changed, fixed, wrong = engine.wait_for(SettingsChangedEvent, 3)
    engine.stop()
    assert (changed.version, changed.refused) == (1, None)
    assert fixed.refused.startswith("config.n_e: cannot be changed while the run trains")
    assert wrong.refused.startswith("config.beta: must be at least 0")
    rates = [
        value
        for event in engine.events()
        if event.type == "points" and event.metric == "optim/learning_rate"
        for value in event.value
    ]
    assert rates[-1] == 0.125


@pytest.mark.long
@pytest.mark.parametrize(
    ("environment", "size"),
    [("ALE/Pong-v5", (160, 210)), ("CartPole-v1", (600, 400))],
)
def test_frames_are_sent_only_while_watched(tmp_path: Path, environment: str, size: tuple[int, int]) -> None:
    engine = Engine(tmp_path, environment, n_w=2 if "ALE" in environment else 1)
    engine.say(Watch(on=True))
    steps, images = zip(*(unpack_frame(engine.socket.recv(1 << 20)) for _ in range(5)), strict=True)
    engine.say(Watch(on=False))
    # An answer to something said later: what was under way has arrived by then.
    engine.say(ChangeSettings(version=1, changes={"beta": 0.02}))
    engine.wait_for(SettingsChangedEvent)
    engine.pictures_waiting()
    engine.wait_for(ReportEvent, len(engine.wait_for(ReportEvent)) + 2)
    assert engine.pictures_waiting() == 0
    engine.stop()
    assert list(steps) == sorted(steps)
    with av.open(io.BytesIO(images[-1]), format="mjpeg") as image:
        assert isinstance(image, InputContainer)
        [frame] = image.decode(video=0)
    assert (frame.width, frame.height) == size
    assert frame.to_ndarray(format="rgb24").std() > 5
    if "ALE" in environment:
        assert any(not np.array_equal(images[0], other) for other in images[1:])


@pytest.mark.long
def test_checkpoint_is_saved_on_request_and_training_goes_on(tmp_path: Path) -> None:
    engine = Engine(tmp_path, "CartPole-v1", checkpoint_interval_s=3600)
    engine.wait_for(StartedEvent)
    engine.say(SaveCheckpoint())
    [saved] = engine.wait_for(CheckpointSavedEvent)
    assert (tmp_path / "checkpoints" / saved.file).is_file()
    engine.wait_for(ReportEvent, len(engine.wait_for(ReportEvent)) + 1)
    engine.stop()
    assert len(only(CheckpointSavedEvent, engine.events())) == 2, "another one at the end"


@pytest.mark.long
def test_engine_dies_with_its_supervisor(tmp_path: Path) -> None:
    engine = Engine(tmp_path, "CartPole-v1")
    engine.wait_for(StartedEvent)
    engine.socket.close()
    assert engine.process.wait(timeout=PATIENCE_S) != 0
    assert not any(json.loads(e.model_dump_json())["type"] == "ended" for e in engine.events())
