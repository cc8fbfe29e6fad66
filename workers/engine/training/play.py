"""Play: an environment in real time, fed with the actions of a person, frame by frame.

The worker's clock sets the pace: each frame of the environment is shown at its time, 60 a second in Atari
games. The action that is held down is read at each decision, every `frame_skip` frames as agents decide, and
repeated in between. Every decision is reported to the worker, which records it; frames may be lost.

A game may go on from a moment of a recorded episode. In a session with an agent, the player hands it the
controls and takes them over at any decision. The agent is loaded while the player plays. A recurrent one
reads the game from its first decision on while the game stands still, and at the latest when it is handed the
controls, so that the player need not wait for it. An agent that cannot be loaded, or cannot read the game,
gets no controls in this game, which its player goes on with.
"""

import json
import select
import socket
import struct
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from secrets import randbits
from time import monotonic
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from backend.specs.environments import ENVIRONMENTS
from backend.specs.play import (
    PLAYER_MESSAGE,
    SIMULATED_BY,
    Act,
    HandOver,
    NewGame,
    Pause,
    PlaySetup,
    SetSpeed,
    no_op,
    version_refusal,
)
from backend.specs.recordings import (
    FRAME,
    REPORT,
    GamePlayed,
    GameStart,
    GameStarted,
    Part,
    Turns,
    joined,
)
from workers.engine.envs import Discrete, Env, make_env
from workers.engine.methods.base import Policy
from workers.engine.training.play_agent import SessionAgent, load_agent
from workers.engine.training.restore import RecordedEpisode, ReplayMismatchError, check_rom, restore

REPORT_INTERVAL_S = 1.0
"""How much of a game is lost if the worker dies."""
IDLE_FRAME_S = 0.5
"""A paused game shows its frame again after this time, so that whoever joins sees it."""
LEAVE_TIMEOUT_S = 2.0
"""How long a report may wait for the worker at the end."""
LOAD_POLL_S = 0.02
"""How often a game that waits for the agent looks whether it is loaded."""
MAX_LATE_S = 0.1
"""A game that is later than this, since the machine was busy, goes on from now and does not catch up."""
_JPEG = [cv2.IMWRITE_JPEG_QUALITY, 92, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]
_LENGTH = struct.Struct("<H")
_PLAYER = 0
"""The player's number among the actors of a game."""


class WorkerGone(Exception):
    """The worker has closed the socket."""


def play(setup: PlaySetup, control_fd: int, folder: Path) -> None:
    """Play games until the worker closes the socket, or its end for messages.

    Args:
        setup: the environment, where its games begin, and the agent.
        control_fd: a socket that keeps message boundaries: messages of the player in; frames and reports out.
        folder: of the agent's checkpoint and the emulator states.

    Raises:
        ReplayMismatchError: the episode from which the games go on cannot be simulated here as it was.
    """
    check_moment(setup)
    config = ENVIRONMENTS[setup.environment].config.model_validate(setup.environment_config)
    load = None if setup.agent is None else partial(load_agent, setup, folder)
    with (
        closing(make_env(setup.environment, config)) as env,
        closing(Player(setup, env, socket.socket(fileno=control_fd), load, folder)) as player,
    ):
        with suppress(WorkerGone):
            player.run()
        with suppress(WorkerGone):
            player.leave()


def check_moment(setup: PlaySetup) -> None:
    """Check that this host simulates the episode from which a session's games go on as it was simulated.

    Raises:
        ReplayMismatchError: it has another ROM, or another version of the package.
    """
    if (moment := setup.moment) is None:
        return
    if moment.rom_sha256 is not None:
        check_rom(setup.environment, moment.rom_sha256)
    family = ENVIRONMENTS[setup.environment].family
    if (refusal := version_refusal(family, moment.versions, _versions(family))) is not None:
        raise ReplayMismatchError(f"the episode cannot be played on: {refusal}")


class Player:
    """One session.

    Args:
        setup: the environment, where its games begin, and the agent.
        env: the environment.
        channel: to the worker.
        load: loads the session's agent; None: it has none.
        folder: of the emulator states.
    """

    def __init__(
        self,
        setup: PlaySetup,
        env: Env,
        channel: socket.socket,
        load: Callable[[], Policy] | None = None,
        folder: Path = Path(),
    ) -> None:
        self._setup = setup
        self._folder = folder
        self._agent = None if load is None else SessionAgent(setup, load)
        self._agent_acts = False
        self._advised: int | None = None
        """The agent's action at the latest decision; None if it was not asked for one."""
        self._env = env
        self._channel = channel
        channel.setblocking(False)
        if setup.environment.startswith("ALE/"):
            env.show_every_frame()  # type: ignore[attr-defined]
        assert isinstance(env.action_space, Discrete)
        self._n_actions = env.action_space.n
        self._no_op = no_op(env.action_names)
        self._observation = np.empty(env.observation_shape, env.observation_dtype)
        self._frame: NDArray[np.uint8] | None = None
        self._unsent: deque[bytes] = deque()
        self._held: int | None = None
        self._seq = self._read_seq = 0
        self._paused = True
        self._rests = True
        """Whether the game stands still because it is paused: at a decision, not within one."""
        self._speed = 1.0
        self._wants_new_game = False
        self._n_games = 0
        self._due = monotonic()
        self._over = False
        self._score = 0.0
        self._game_frames = self._part_frames = self._n_steps = 0
        self._game_actions: list[int] = []
        self._game_rewards: list[float] = []
        """As `_game_actions`, of all decisions of the episode; the lists below are of unreported ones."""
        self._actions: list[int] = []
        self._rewards: list[float] = []
        self._lives: list[int] = []
        self._turns: Turns = []
        self._inputs: list[tuple[int, int, int]] = []
        self._speeds: list[tuple[int, float]] = []
        self._played_speed = 1.0
        """Speed of the latest frame."""
        self._is_practice = False
        """Whether a frame of the game was played at another speed than the console's."""
        self._started_at = self._reported_at = monotonic()

    def run(self) -> None:
        """Play one game after the other.

        Raises:
            WorkerGone: the worker has closed the socket.
        """
        while True:
            moment = self._setup.moment
            self._play_game(randbits(31) if moment is None else moment.seed)

    def leave(self) -> None:
        """Report what the latest report lacks; the worker may still read it.

        Raises:
            WorkerGone: the worker has closed the socket.
        """
        self._channel.settimeout(LEAVE_TIMEOUT_S)
        with suppress(TimeoutError):
            self._report()
            self._send_unsent()

    def close(self) -> None:
        """Close the environment in which the agent reads."""
        if self._agent is not None:
            self._agent.close()

    def _play_game(self, seed: int) -> None:
        self._start_game(seed)
        has_crashed = False
        while not (self._over or self._wants_new_game):
            action = self._next_action()
            if action is None:
                break
            turn = (self._setup.agent.actor if self._agent_acts and self._setup.agent else _PLAYER, 1)
            step = self._env.step(action, self._observation)
            if step.crashed:  # a decision that was not taken; the game ends unfinished
                has_crashed = self._over = True
                break
            self._game_actions.append(action)
            self._game_rewards.append(step.reward)
            self._actions.append(action)
            self._turns = joined((*self._turns, turn))
            self._rewards.append(step.reward)
            self._lives.append(self._env.lives())
            self._score += step.reward
            self._part_frames += step.frames
            self._over = step.episode_over
            if monotonic() - self._reported_at >= REPORT_INTERVAL_S:
                self._report()
        finished = self._over and not has_crashed
        self._report(finished=finished, left=not finished)
        self._paused = self._rests = True
        while not self._wants_new_game:
            self._show()
            self._receive(IDLE_FRAME_S)

    def _start_game(self, seed: int) -> None:
        restored_frames = self._restore(seed)
        self._env.on_frame = self._on_frame
        moment = self._setup.moment
        self._n_games += 1
        self._wants_new_game = self._over = self._agent_acts = False
        self._advised = None
        self._paused, self._held = True, None
        self._game_actions = [] if moment is None else list(moment.actions)
        self._game_rewards = [] if moment is None else list(moment.rewards)
        self._score, self._n_steps = float(sum(self._game_rewards)), len(self._game_actions)
        self._game_frames, self._part_frames = restored_frames, 0
        self._clear_part()
        self._played_speed, self._is_practice = 1.0, False
        self._started_at = self._reported_at = monotonic()
        start = GameStart(
            seed=seed,
            frames_per_step=int(self._setup.environment_config.get("frame_skip") or 1),
            action_names=list(self._env.action_names),
            rom_sha256=_rom_sha256(self._setup.environment),
            versions=_versions(ENVIRONMENTS[self._setup.environment].family),
            restored_frames=restored_frames,
        )
        self._send_report(GameStarted(game=start))
        if self._agent is not None:
            self._agent.start_game(seed, len(self._game_actions))
        self._show()
        if self._agent is not None:
            self._agent.start_loading()

    def _clear_part(self) -> None:
        self._actions, self._rewards, self._lives, self._inputs, self._turns = [], [], [], [], []
        self._speeds = []

    def _restore(self, seed: int) -> int:
        """Bring the environment to where a game begins; return the emulator frames before that."""
        moment = self._setup.moment
        if moment is None or not moment.actions:
            self._show_beginning(seed)
            self._env.reset(seed, self._observation)
            return 0
        frames: list[NDArray[np.uint8]] = []

        def watch(t: int, observation: NDArray[Any]) -> None:
            if t == len(moment.actions) - 1:  # its last frame is the one of the moment
                self._env.on_frame = lambda frame: frames.append(frame.copy())

        self._env.on_frame = None
        episode = RecordedEpisode(seed, np.asarray(moment.actions), np.asarray(moment.rewards, np.float32))
        n_frames = restore(
            self._env,
            episode,
            len(moment.actions),
            self._observation,
            watch=watch,
            states=None if moment.states is None else self._folder / moment.states,
        )
        self._frame = frames[-1] if frames else None
        return n_frames

    def _show_beginning(self, seed: int) -> None:
        """Keep the first frame that is drawn: at the reset, or else, as in Atari games, by a decision."""
        frames: list[NDArray[np.uint8]] = []
        self._env.on_frame = lambda frame: frames.append(frame.copy())
        self._env.reset(seed, self._observation)
        if not frames:
            self._env.step(self._no_op or 0, self._observation)
        self._env.on_frame = None
        self._frame = frames[0] if frames else None

    def _on_frame(self, frame: NDArray[np.uint8]) -> None:
        """Show a frame, and wait until the next one is due."""
        self._game_frames += 1
        self._frame = frame
        self._show()
        if self._speed != self._played_speed:
            self._played_speed, self._is_practice = self._speed, True
            self._speeds.append((self._game_frames, self._speed))
        self._due += 1.0 / (self._env.frames_per_second * self._speed)
        if self._due < monotonic() - MAX_LATE_S:
            self._due = monotonic()
        while (left_s := self._due - monotonic()) > 0:
            self._receive(left_s)
        self._receive(0.0)

    def _next_action(self) -> int | None:
        """The action of the next decision, of the agent or the player, once the game goes on; None for a new
        game."""
        if self._waits():
            self._rests = self._paused
            self._report()  # who pauses may leave
            while self._waits() and not self._wants_new_game:
                self._show()
                self._wait()
                self._rests = self._paused
            self._due = monotonic()
        self._rests = False
        self._read_seq = self._seq
        if self._wants_new_game:
            return None
        agent = self._agent
        if agent is not None:
            agent.take_loaded(len(self._game_actions))
        asked = agent is not None and (self._agent_acts or agent.watches)
        self._advised = agent.advise(self._observation) if agent is not None and asked else None
        return self._advised if self._agent_acts else self._no_op if self._held is None else self._held

    def _waits(self) -> bool:
        if self._agent is not None and self._agent_acts:
            return self._paused or not self._agent.is_ready
        return self._paused or (self._held is None and self._no_op is None)

    def _wait(self) -> None:
        """Wait for messages, or until the frame is due again; meanwhile the agent gets ready."""
        until_s = monotonic() + IDLE_FRAME_S
        while self._waits():
            timeout_s, has_changed = max(0.0, until_s - monotonic()), False
            if (agent := self._agent) is not None and agent.is_loading:
                agent.take_loaded(len(self._game_actions))
                timeout_s, has_changed = LOAD_POLL_S, not agent.is_loading
            elif agent is not None and agent.must_read and self._lets_agent_read():
                agent.read(self._game_actions, self._game_rewards)
                timeout_s, has_changed = 0.0, not agent.must_read
            if agent is not None and agent.unavailable is not None and self._agent_acts:
                self._paused, self._agent_acts = True, False
            if has_changed or self._receive(timeout_s) or monotonic() >= until_s:
                return

    def _lets_agent_read(self) -> bool:
        """Whether the agent reads the game now that it stands still.

        In Atari games it does at once. Another environment may be a program of its own, such as ViZDoom: a
        second one is started only once the player has played on, or hands over the controls.
        """
        moment = self._setup.moment
        has_played = len(self._game_actions) > (0 if moment is None else len(moment.actions))
        return self._agent_acts or has_played or self._setup.environment.startswith("ALE/")

    def _show(self) -> None:
        agent = self._agent
        status = {
            "score": self._score,
            "lives": self._env.lives(),
            "frames": self._game_frames,
            "action": self._advised if self._agent_acts else self._held,
            "paused": self._rests,
            "over": self._over,
            "speed": self._speed,
            "practice": self._is_practice,
            "game": self._n_games,
            "acting": "agent" if self._agent_acts else "person",
            "loading": self._agent_acts and agent is not None and agent.is_loading,
            "reading": self._agent_acts and agent is not None and agent.must_read,
            "unavailable": None if agent is None else agent.unavailable,
            "seq": self._read_seq,
        }
        text = json.dumps(status, separators=(",", ":")).encode()
        jpeg = b""
        if self._frame is not None:
            jpeg = encoded(self._frame)
        with suppress(BlockingIOError):  # the worker is busy: the frame is lost
            self._send(FRAME + _LENGTH.pack(len(text)) + text + jpeg)

    def _receive(self, timeout_s: float) -> bool:
        """Wait for messages, at most this long, and apply those that have come; return whether any has."""
        self._send_unsent()
        if timeout_s > 0 and not select.select([self._channel], [], [], timeout_s)[0]:
            return False
        has_come = False
        while True:
            try:
                data = self._channel.recv(1 << 16)
            except BlockingIOError:
                return has_come
            except ConnectionResetError:
                data = b""
            if not data:
                raise WorkerGone
            self._apply(data)
            has_come = True

    def _apply(self, data: bytes) -> None:
        match PLAYER_MESSAGE.validate_json(data):
            case Act(action=action, seq=seq) if action is None or action < self._n_actions:
                self._seq = seq
                if action != self._held:
                    self._held = action
                    elapsed_ms = int(1000 * (monotonic() - self._started_at))
                    self._inputs.append((self._game_frames, elapsed_ms, -1 if action is None else action))
                if action is not None:
                    self._paused = False
            case Pause(paused=paused):
                self._paused = paused
            case SetSpeed(speed=speed):
                self._speed = float(speed)
            case NewGame():
                self._wants_new_game = True
            case HandOver(to=to) if self._can_hand_over():
                self._agent_acts = to == "agent"
                self._paused = self._paused and not self._agent_acts

    def _can_hand_over(self) -> bool:
        return self._agent is not None and self._agent.unavailable is None and not self._over

    def _report(self, *, finished: bool = False, left: bool = False) -> None:
        """Report the decisions since the last report."""
        self._reported_at = monotonic()
        if not (self._actions or finished or left):
            return
        part = Part(
            first_step=self._n_steps,
            actions=self._actions,
            rewards=self._rewards,
            lives=self._lives,
            n_frames=self._part_frames,
            inputs=self._inputs,
            turns=self._turns,
            speeds=self._speeds,
            finished=finished,
            left=left,
        )
        self._n_steps += len(self._actions)
        self._clear_part()
        self._part_frames = 0
        self._send_report(GamePlayed(part=part))

    def _send_report(self, report: GameStarted | GamePlayed) -> None:
        self._unsent.append(REPORT + report.model_dump_json().encode())
        self._send_unsent()

    def _send_unsent(self) -> None:
        with suppress(BlockingIOError):
            while self._unsent:
                self._send(self._unsent[0])
                self._unsent.popleft()

    def _send(self, message: bytes) -> None:
        try:
            self._channel.send(message)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise WorkerGone from error


def encoded(frame: NDArray[np.uint8]) -> bytes:
    """A frame, (H, W, 3) RGB, as a JPEG."""
    return cv2.imencode(".jpg", cv2.cvtColor(frame, cv2.COLOR_RGB2BGR), _JPEG)[1].tobytes()


def _rom_sha256(environment: str) -> str | None:
    if not environment.startswith("ALE/"):
        return None
    from workers.engine.envs.atari import rom_sha256

    return rom_sha256(environment)


def _versions(family: str) -> dict[str, str]:
    versions: dict[str, str] = {}
    for package in ("callboard", SIMULATED_BY.get(family, "numpy")):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions
