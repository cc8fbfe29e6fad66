"""The engine of a play session: real emulator, messages of the player in, frames and reports out."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.atari import AtariConfig
from backend.specs.play import PlaySetup, play_config
from backend.specs.recordings import FRAME, GAME_REPORT, GamePlayed, GameReport, GameStarted
from tests.support.waiting import PATIENCE_S, Patience
from workers.engine.envs.atari import AtariEnv
from workers.engine.training.play import Player, WorkerGone, encoded

BREAKOUT = "ALE/Breakout-v5"


class Session:
    """The worker's end of a session whose engine runs in a thread."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self.reports: list[GameReport] = []
        self.status: dict[str, Any] = {}
        self.shown: list[tuple[dict[str, Any], bytes]] = []
        """Status and JPEG of each frame."""

    def send(self, **message: Any) -> None:
        """Send a message of the player."""
        self._channel.send(json.dumps(message).encode())

    def until(self, **status: Any) -> None:
        """Read messages until a frame has this status."""
        self._read_until(lambda: self.status.items() >= status.items(), status)

    def after(self, frames: int) -> None:
        """Read messages until the game is this long."""
        self._read_until(lambda: self.status.get("frames", 0) >= frames, f"{frames} frames")

    def parts(self) -> list[GamePlayed]:
        """What has been reported of all games."""
        return [report for report in self.reports if isinstance(report, GamePlayed)]

    def _read_until(self, is_true: Callable[[], bool], awaited: object) -> None:
        def detail() -> str:
            return f"awaited {awaited}, the last status is {self.status}"

        patience = Patience(detail=detail)
        while patience.lasts() and not is_true():
            try:
                self._read()
            except TimeoutError:
                raise AssertionError(f"no message within {PATIENCE_S:g} s: {detail()}") from None

    def read_all(self) -> None:
        """Read messages until the engine closes its end."""
        while self._read():
            pass

    def _read(self) -> bool:
        message = self._channel.recv(2**20)
        if not message:
            return False
        if message[:1] == FRAME:
            length = int.from_bytes(message[1:3], "little")
            self.status = json.loads(message[3 : 3 + length])
            self.shown.append((self.status, message[3 + length :]))
        else:
            self.reports.append(GAME_REPORT.validate_json(message[1:]))
        return True


@contextmanager
def _session(env: AtariEnv, config: AtariConfig) -> Iterator[Session]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(PATIENCE_S)
    setup = PlaySetup(environment=BREAKOUT, environment_config=config.model_dump(mode="json"))

    def run() -> None:
        with suppress(WorkerGone):
            Player(setup, env, theirs).run()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield Session(ours)
    finally:
        ours.close()
        thread.join()
        theirs.close()


def _config(*, every_frame: bool = False) -> AtariConfig:
    config = play_config(ENVIRONMENTS[BREAKOUT], every_frame=every_frame)
    assert isinstance(config, AtariConfig)
    return config


def test_game_is_simulated_again_to_the_same_memory_and_screen() -> None:
    config = _config()
    env = AtariEnv(BREAKOUT, config)
    names = list(env.action_names)
    with _session(env, config) as session:
        session.until(paused=True, game=1)
        session.send(type="speed", speed=4)
        session.send(type="action", action=names.index("FIRE"))
        session.after(20)
        session.send(type="action", action=names.index("RIGHT"))
        session.after(80)
        session.send(type="action", action=None)
        session.after(120)
        session.send(type="pause", paused=True)
        session.until(paused=True)
        memory, screen = env.ale.getRAM(), env.ale.getScreenRGB()
        assert session.status["practice"]
        session.send(type="new_game")
        session.until(game=2)
        assert not session.status["practice"]
    [start, *_] = session.reports
    assert isinstance(start, GameStarted)
    parts = [report.part for report in session.parts()]
    actions = [action for part in parts for action in part.actions]
    assert {names[action] for action in actions} == {"NOOP", "FIRE", "RIGHT"}
    changes = [names[action] if action >= 0 else None for part in parts for _, _, action in part.inputs]
    assert changes == ["FIRE", "RIGHT", None]
    assert parts[-1].left
    assert [change for part in parts for change in part.speeds] == [(1, 4.0)], "from the first frame on"
    assert sum(part.n_frames for part in parts) == 4 * len(actions)
    again = AtariEnv(BREAKOUT, config)
    out = np.empty(again.observation_shape, again.observation_dtype)
    again.reset(start.game.seed, out)
    for action in actions:
        again.step(action, out)
    assert np.array_equal(again.ale.getRAM(), memory)
    assert np.array_equal(again.ale.getScreenRGB(), screen)


def test_report_that_could_not_be_sent_is_sent_when_the_session_ends() -> None:
    config = _config()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    setup = PlaySetup(environment=BREAKOUT, environment_config=config.model_dump(mode="json"))
    player = Player(setup, AtariEnv(BREAKOUT, config), theirs)
    with suppress(BlockingIOError):
        while True:  # frames that nobody has read yet
            theirs.send(FRAME + b"\x02\x00{}")
    ours.shutdown(socket.SHUT_WR)
    with pytest.raises(WorkerGone):
        player.run()

    def leave() -> None:
        player.leave()
        theirs.close()

    thread = threading.Thread(target=leave)
    thread.start()
    session = Session(ours)
    session.read_all()
    thread.join()
    ours.close()
    assert [type(report) for report in session.reports] == [GameStarted]


def test_actions_are_read_at_every_frame_on_request() -> None:
    config = _config(every_frame=True)
    with _session(AtariEnv(BREAKOUT, config), config) as session:
        session.until(paused=True)
        session.send(type="action", action=1, seq=5)
        session.until(seq=5)
        session.after(7)
        session.send(type="new_game")
        session.until(game=2)
        assert session.status["action"] is None, "a new game waits for a key that is pressed in it"
    part = session.parts()[0].part
    assert len(part.actions) == part.n_frames
    assert [action for _, _, action in part.inputs] == [1]


def test_speed_that_was_changed_and_changed_back_before_a_frame_is_none_of_the_game() -> None:
    config = _config()
    with _session(AtariEnv(BREAKOUT, config), config) as session:
        session.until(paused=True, game=1)
        session.send(type="speed", speed=0.25)
        session.until(speed=0.25)
        session.send(type="speed", speed=1)
        session.until(speed=1)
        session.send(type="action", action=1)
        session.after(8)
        session.send(type="new_game")
        session.until(game=2)
    assert [report.part.speeds for report in session.parts()] == [[]]


def test_every_frame_of_the_console_is_shown_in_order() -> None:
    config = _config()
    with _session(AtariEnv(BREAKOUT, config), config) as session:
        session.until(paused=True)
        session.send(type="speed", speed=0.25)  # none is lost, even if this thread is late
        session.send(type="action", action=1)
        session.after(18)
        session.send(type="pause", paused=True)
        session.until(paused=True)
        shown = {status["frames"]: jpeg for status, jpeg in session.shown}
        session.send(type="new_game")
        session.until(game=2)
    start = session.reports[0]
    assert isinstance(start, GameStarted)
    parts = [report.part for report in session.parts()]
    n_frames = sum(part.n_frames for part in parts)
    assert n_frames >= 20
    assert list(shown) == list(range(n_frames + 1)), "0: the beginning of the game"
    again = AtariEnv(BREAKOUT, config)
    again.reset(start.game.seed, np.empty(again.observation_shape, again.observation_dtype))
    frame = 0
    for action in (action for part in parts for action in part.actions):
        for _ in range(4):
            again.ale.act(again.actions[action])
            frame += 1
            assert shown[frame] == encoded(again.ale.getScreenRGB()), frame
    assert len({shown[frame] for frame in range(1, n_frames + 1)}) > n_frames / 2
