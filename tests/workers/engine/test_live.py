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

from backend.live.gameplay import read_picture
from backend.specs.commands import COMMAND, Settings, Stop, Watch
from backend.specs.events import AnyEvent, Report, SettingsChanged, Started
from backend.specs.run import parse_run_spec
from workers.engine.event_log import read_frames


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
        self.log = run_dir / "attempts" / "1" / "events.log"
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(60)
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

    def say(self, command: Settings | Stop | Watch) -> None:
        self.socket.send(COMMAND.dump_json(command) + b"\n")

    def events(self) -> list[AnyEvent]:
        return [event for frame, _ in read_frames(self.log) for event in frame]

    def wait_for(self, kind: type[Any], count: int = 1) -> list[Any]:
        while len(found := [e for e in self.events() if isinstance(e, kind)]) < count:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.1)
            assert self.process.returncode is None
        return found

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
        assert self.process.wait(timeout=60) == 0
        self.socket.close()


@pytest.mark.parametrize("n_w", [1, pytest.param(2, marks=pytest.mark.long)])
def test_settings_change_on_a_running_run(tmp_path: Path, n_w: int) -> None:
    engine = Engine(tmp_path, "CartPole-v1", n_w=n_w)
    engine.say(Settings(version=1, changes={"learning_rate": 0.125, "beta": 0.5}))
    engine.say(Settings(version=2, changes={"n_e": 8}))
    engine.say(Settings(version=3, changes={"beta": -1}))
    changed, fixed, wrong = engine.wait_for(SettingsChanged, 3)
    engine.stop()
    assert (changed.version, changed.refused) == (1, None)
    assert fixed.refused.startswith("config.n_e: cannot be changed on a running run")
    assert wrong.refused.startswith("config.beta: input should be greater than or equal to 0")
    rates = [
        value
        for event in engine.events()
        if event.type == "points" and event.metric == "optim/learning_rate"
        for value in event.value
    ]
    assert rates[-1] == 0.125


@pytest.mark.parametrize(
    ("environment", "size"),
    [pytest.param("ALE/Pong-v5", (160, 210), marks=pytest.mark.long), ("CartPole-v1", (600, 400))],
)
def test_pictures_come_while_someone_watches_and_only_then(
    tmp_path: Path, environment: str, size: tuple[int, int]
) -> None:
    engine = Engine(tmp_path, environment, n_w=2 if "ALE" in environment else 1)
    engine.say(Watch(on=True))
    steps, pictures = zip(*(read_picture(engine.socket.recv(1 << 20)) for _ in range(5)), strict=True)
    engine.say(Watch(on=False))
    # An answer to something said later: what was under way has arrived by then.
    engine.say(Settings(version=1, changes={"beta": 0.02}))
    engine.wait_for(SettingsChanged)
    engine.pictures_waiting()
    engine.wait_for(Report, len(engine.wait_for(Report)) + 2)
    assert engine.pictures_waiting() == 0
    engine.stop()
    assert list(steps) == sorted(steps)
    with av.open(io.BytesIO(pictures[-1]), format="mjpeg") as image:
        [frame] = image.decode(video=0)
    assert (frame.width, frame.height) == size
    assert frame.to_ndarray(format="rgb24").std() > 5
    if "ALE" in environment:
        assert any(not np.array_equal(pictures[0], other) for other in pictures[1:])


def test_engine_dies_when_its_supervisor_is_gone(tmp_path: Path) -> None:
    engine = Engine(tmp_path, "CartPole-v1")
    engine.wait_for(Started)
    engine.socket.close()
    assert engine.process.wait(timeout=60) != 0
    assert not any(json.loads(e.model_dump_json())["type"] == "ended" for e in engine.events())
