"""One ViZDoom process that plays maps given as bytes and leaves no files behind, however it ends.

ViZDoom runs the game as a child process and communicates through named shared memory. Here the child dies
with its parent, runs in a temporary folder that is deleted once it has started and reads its map from an
unnamed file; its shared memory is unlinked as soon as both sides have mapped it.
"""

import os
import shlex
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import vizdoom
from numpy.typing import NDArray

from workers.engine.envs.base import EnvCrashedError

_DIES_WITH_PARENT = (
    "import ctypes, os, signal, sys;"
    "ctypes.CDLL(None).prctl(1, signal.SIGKILL);"  # PR_SET_PDEATHSIG
    "os.execv(sys.argv[1], sys.argv[1:])"
)
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # where POSIX puts it, not a file of ours
_CRASHES = (
    vizdoom.ViZDoomErrorException,
    vizdoom.ViZDoomUnexpectedExitException,
    vizdoom.ViZDoomIsNotRunningException,
)


SEED = 0
"""Seeds the game itself: the phase in which item animations start."""
SETTLING_FRAMES = 8


class Doom:
    """A running game.

    Args:
        wad: the first map, MAP01; every later one has the same length.
        buttons: meaning of an action's numbers.
        variables: what `observe` returns in addition to the frame, in this order.

    Raises:
        EnvCrashedError: the game did not start.
    """

    def __init__(
        self, wad: bytes, buttons: list[vizdoom.Button], variables: list[vizdoom.GameVariable]
    ) -> None:
        self._wad_fd = os.memfd_create("callboard-maze")
        os.pwrite(self._wad_fd, wad, 0)
        game = self._game = vizdoom.DoomGame()
        game.set_doom_scenario_path(f"/proc/{os.getpid()}/fd/{self._wad_fd}")
        game.set_doom_map("MAP01")
        game.set_doom_config_path(os.devnull)
        game.set_window_visible(False)
        game.set_sound_enabled(False)
        game.set_console_enabled(False)
        game.set_mode(vizdoom.Mode.PLAYER)
        game.set_episode_timeout(0)
        game.set_seed(SEED)
        game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
        game.set_screen_format(vizdoom.ScreenFormat.RGB24)
        for hide in ("hud", "weapon", "crosshair", "decals", "particles", "messages", "screen_flashes"):
            getattr(game, f"set_render_{hide}")(False)
        game.set_available_buttons(buttons)
        game.set_available_game_variables(variables)
        handlers = [
            (name, signal.getsignal(name)) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGABRT)
        ]
        with tempfile.TemporaryDirectory(prefix="callboard-doom-") as folder:
            launcher = Path(folder) / "launch"
            launch = [sys.executable, "-ISc", _DIES_WITH_PARENT, _binary()]
            launcher.write_text(f'#!/bin/sh\ncd {shlex.quote(folder)} && exec {shlex.join(launch)} "$@"\n')
            launcher.chmod(0o700)
            game.set_vizdoom_path(str(launcher))
            try:
                game.init()
                self._settle()
            except _CRASHES as error:
                raise EnvCrashedError(f"ViZDoom did not start: {error}") from error
        self.process = _newest_child()
        _unname_shared_memory(self.process)
        if threading.current_thread() is threading.main_thread():
            for name, handler in handlers:  # ViZDoom replaced them
                signal.signal(name, handler)

    def load(self, wad: bytes) -> None:
        """Start another map.

        Raises:
            EnvCrashedError: the game has died.
        """
        os.pwrite(self._wad_fd, wad, 0)
        try:
            self._game.set_seed(SEED)
            self._game.new_episode()
            self._settle()
        except _CRASHES as error:
            raise EnvCrashedError(f"ViZDoom died: {error}") from error

    def _settle(self) -> None:
        """Skip the frames in which a new map ignores its player."""
        self._game.make_action([0.0] * self._game.get_available_buttons_size(), SETTLING_FRAMES)

    def act(self, numbers: list[float], frames: int) -> None:
        """Repeat an action for `frames` frames.

        Raises:
            EnvCrashedError: the game has died.
        """
        try:
            self._game.make_action(numbers, frames)
        except _CRASHES as error:
            raise EnvCrashedError(f"ViZDoom died: {error}") from error

    def observe(self) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
        """The frame, (120, 160, 3) RGB, and the game variables.

        Raises:
            EnvCrashedError: the game has died.
        """
        state: Any = self._game.get_state()
        if state is None:
            raise EnvCrashedError("ViZDoom has no state: its map has ended")
        return state.screen_buffer, state.game_variables

    def close(self) -> None:
        """End the game."""
        with suppress(*_CRASHES):
            self._game.close()
        os.close(self._wad_fd)


def _binary() -> str:
    return str(Path(vizdoom.__file__).parent / "vizdoom")


def _newest_child() -> psutil.Process:
    ours = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # another one has just ended
            if child.name() == "vizdoom":
                ours.append(child)
    return max(ours, key=lambda child: (child.create_time(), child.pid))


def _unname_shared_memory(process: psutil.Process) -> None:
    command = process.cmdline()
    instance = command[command.index("+viz_instance_id") + 1]
    for path in _SHARED_MEMORY.glob(f"ViZDoom*{instance}"):
        path.unlink(missing_ok=True)
