"""A share of the batch of PAAC's framework: the rollout of some environments, their part of the gradient."""

import os
import pickle
import subprocess
import sys
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Pipe
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.specs.algorithms.synchronous import SynchronousConfig
from backend.specs.run import RunSpec
from workers.engine.algorithms.paac_method import Choice, MethodMaker, Slice, Tools
from workers.engine.devices import to_device
from workers.engine.envs.vector import FinishedEpisode, VectorWorld, WorldDiedError
from workers.engine.learner import EpisodeEnd
from workers.engine.memory import SharedVectors
from workers.engine.optimizers import FlatParameters
from workers.engine.recording import EpisodeRecorder
from workers.engine.returns import n_step_returns
from workers.engine.seeds import EpisodeSeeds
from workers.engine.unroll import Unroll

RECORDED = 0
"""The environment of the run whose episodes are recorded."""


class ShareError(RuntimeError):
    """An error in a share's process; the message is its traceback."""


@dataclass(frozen=True)
class Task:
    """What a share's process is told first; the memory's rows are theta, theta_minus and every dtheta."""

    spec: dict[str, Any]
    maker: MethodMaker
    environments: Slice
    memory_fd: int
    memory_shape: tuple[int, int]
    row: int
    """Where its dtheta is."""


class Spent(NamedTuple):
    """What a rollout's time went to, in seconds."""

    environment_s: float = 0.0
    choosing_s: float = 0.0
    learning_s: float = 0.0


@dataclass(slots=True)
class ShareResult:
    """What a share adds to the sums over the whole batch."""

    frames: int = 0
    episodes: list[EpisodeEnd] = field(default_factory=list)
    spent: Spent = field(default_factory=Spent)
    told: dict[str, float] = field(default_factory=dict)
    """Metric -> this share's part of its mean over the batch."""
    epsilon_B: NDArray[np.float64] | None = None
    """Share of random actions of each environment, of methods that have such."""
    pictures: list[bytes] = field(default_factory=list)
    """JPEGs of the recorded environment's play, while someone watches."""
    dtheta: Any = None
    """(P,) gradient of the batch's mean loss through this share's decisions; None across processes."""


class Share:
    """Acts in its environments for t_max decisions and leaves its part of the gradient in `flat.dtheta`."""

    def __init__(
        self,
        spec: RunSpec,
        maker: MethodMaker,
        environments: Slice,
        network: Any,
        flat: FlatParameters,
        theta_minus: Tensor,
        *,
        processes: int,
    ) -> None:
        assert isinstance(spec.config, SynchronousConfig)
        self._config = spec.config
        self._unroll = Unroll(
            network.body, None, dtype=torch.bfloat16 if spec.config.precision == "bf16" else None
        )
        self._flat = flat
        self._device = flat.theta.device
        first, last = environments
        self._B = last - first
        self._recorded = RECORDED - first
        self._records = first <= RECORDED < last
        self._seed = spec.seed
        self._seeds = EpisodeSeeds(spec.seed, range(first, last))
        self._world = VectorWorld(
            spec, environments=self._B, processes=processes, slots=1, next_seed=self._seeds.next
        )
        self._generator = torch.Generator(self._device).manual_seed(spec.seed * 1_000_003 + first)
        self._method = maker.method(
            Tools(self._config, network, self._unroll.peek, theta_minus, environments, self._generator)
        )
        self._recorder: EpisodeRecorder | None = EpisodeRecorder()
        self._taken: list[list[int]] | None = [[] for _ in range(self._B)] if spec.world.replayable else None
        self._frames = 0
        self._world.reset()

    def wait_ready(self) -> None:
        """Its worlds are built already."""

    def begin(self, frames: int, *, watched: bool) -> None:
        """All else is done in `finish`; `frames` are the run's so far."""
        self._frames = frames
        self._world.watch(self._recorded if watched and self._records else None)

    def change(self, config: SynchronousConfig) -> None:
        """Go on with other settings."""
        self._config = config
        self._method.change(config)

    def finish(self) -> ShareResult:
        """Lines 4 to 17 of Algorithm 1 for these environments."""
        c = self._config
        shared = self._world.shared
        result = ShareResult(dtheta=self._flat.dtheta, epsilon_B=self._method.begin(self._frames))
        actions = []
        self._unroll.begin()
        reward_TB = np.empty((c.t_max, self._B), np.float32)
        terminal_TB = np.empty((c.t_max, self._B), np.bool_)
        environment_s = choosing_s = 0.0
        for t in range(c.t_max):
            began = time.perf_counter()
            with torch.no_grad():
                choice = self._method.choose(self._unroll.step(self._observation()))
            action_B = choice.action_B.cpu().numpy()
            chosen = time.perf_counter()
            finished = self._world.step(action_B, 0)
            stepped = time.perf_counter()
            choosing_s += chosen - began
            environment_s += stepped - chosen
            reward_TB[t] = shared.reward_B
            if c.reward_clip:
                np.clip(reward_TB[t], -c.reward_clip, c.reward_clip, out=reward_TB[t])
            terminal_TB[t] = shared.terminal_B
            result.frames += int(shared.frames_B.sum())
            if (picture := self._world.take_picture()) is not None:
                result.pictures.append(picture)
            if self._records:
                self._record(action_B, choice)
            if self._taken is not None:
                self._remember(action_B)
            if finished:
                result.episodes += [self._episode_end(episode) for episode in finished]
                self._bootstrap_truncated(reward_TB[t], terminal_TB[t])
            actions.append(choice.action_B)
        began = time.perf_counter()
        with torch.no_grad():
            bootstrap_B = self._method.value(self._observation())
        R_TB = n_step_returns(
            torch.from_numpy(reward_TB).to(self._device),
            torch.from_numpy(terminal_TB).to(self._device),
            bootstrap_B,
            c.gamma,
        )
        features_NF = self._unroll.features()
        loss, told = self._method.loss(features_NF, torch.cat(actions), R_TB.reshape(-1))
        share = self._B / c.n_e
        self._flat.dtheta.zero_()
        (loss * share).backward()  # type: ignore[no-untyped-call]
        assert features_NF.grad is not None
        self._unroll.backward(features_NF.grad)
        result.told = {metric: mean.item() * share for metric, mean in told.items()}
        result.spent = Spent(environment_s, choosing_s, time.perf_counter() - began)
        return result

    def state(self) -> dict[str, Any]:
        """Random state, how many episodes each environment has begun, and its actions in the present one."""
        state = {
            "generator": self._generator.get_state(),
            "run_seed": self._seed,
            "episodes_begun": list(self._seeds.begun),
        }
        return state if self._taken is None else state | {"actions": [list(taken) for taken in self._taken]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with that randomness, in the same episodes where actions are kept, else in new ones.

        In a run with another seed (a fork) both begin anew.
        """
        mine = state.get("run_seed", self._seed) == self._seed
        if mine:
            self._generator.set_state(state["generator"])
        self._seeds.begun = list(state["episodes_begun"])
        if self._taken is None or not mine or "actions" not in state:
            self._recorder = EpisodeRecorder()
            self._world.reset()
        else:
            self._replay(state["actions"])

    def close(self) -> None:
        """Close the worlds."""
        self._world.close()

    def _observation(self) -> Tensor:
        return to_device(self._world.shared.observation_SB[0], self._device)

    def _remember(self, action_B: NDArray[Any]) -> None:
        assert self._taken is not None
        for taken, action, ended in zip(
            self._taken, action_B.tolist(), self._world.shared.ended_B.tolist(), strict=True
        ):
            if ended:
                taken.clear()
            else:
                taken.append(action)

    def _replay(self, actions: list[list[int]]) -> None:
        """Play the present episodes again to where they were; the recorded one's record is lost."""
        # Beside the present episode's seed, that of the next has been drawn.
        self._seeds.begun = [begun - 2 for begun in self._seeds.begun]
        self._world.reset()
        self._taken = [[] for _ in range(self._B)]
        for t in range(max(map(len, actions))):
            acting_B = np.array([t < len(taken) for taken in actions])
            action_B = np.array([taken[t] if t < len(taken) else 0 for taken in actions])
            self._world.step(action_B, 0, acting_B)
        self._taken = [list(taken) for taken in actions]
        self._recorder = None if self._records and actions[self._recorded] else EpisodeRecorder()

    def _record(self, action_B: NDArray[Any], choice: Choice) -> None:
        if self._recorder is None:
            return
        shared, i = self._world.shared, self._recorded
        lives = 0 if shared.ended_B[i] else int(shared.lives_B[i])
        value, policy_A = float(choice.value_B[i]), choice.policy_BA[i].cpu().numpy()
        self._recorder.add(int(action_B[i]), float(shared.reward_B[i]), value, policy_A, lives)

    def _episode_end(self, episode: FinishedEpisode) -> EpisodeEnd:
        end = EpisodeEnd(
            source="",
            seed=episode.seed,
            episode_return=episode.episode_return,
            length_steps=episode.length_steps,
            length_frames=episode.length_frames,
            crashed=episode.crashed,
        )
        if episode.environment == self._recorded:
            end.recording, self._recorder = self._recorder, EpisodeRecorder()
        return end

    def _bootstrap_truncated(self, reward_B: NDArray[np.float32], terminal_B: NDArray[np.bool_]) -> None:
        """Close cut-off episodes: what would have followed is added to the reward, the return ends there."""
        shared = self._world.shared
        cut = np.flatnonzero(shared.ended_B & shared.truncated_B & ~shared.terminal_B)
        if len(cut):
            with torch.no_grad():
                v = self._method.value(to_device(shared.final_observation_B[cut], self._device))
            reward_B[cut] += self._config.gamma * v.cpu().numpy()
            terminal_B[cut] = True


class ShareInProcess:
    """A share in a single-threaded process of its own, which shares theta and leaves its dtheta in memory."""

    def __init__(
        self,
        spec: RunSpec,
        maker: MethodMaker,
        environments: Slice,
        memory: SharedVectors,
        dtheta: Tensor,
        row: int,
    ) -> None:
        self._dtheta = dtheta
        self._channel, theirs = Pipe()
        task = Task(spec.model_dump(mode="json"), maker, environments, memory.fd, memory.shape, row)
        module = "workers.engine.algorithms.paac_process"
        command = [sys.executable, "-m", module, str(theirs.fileno()), str(os.getpid())]
        # Out of the terminal's foreground group: Ctrl-C is the engine's to answer.
        self._process = subprocess.Popen(command, pass_fds=(memory.fd, theirs.fileno()), process_group=0)
        theirs.close()
        self._channel.send_bytes(pickle.dumps(task))

    def wait_ready(self) -> None:
        """Wait until its worlds are built."""
        self._receive()

    def begin(self, frames: int, *, watched: bool) -> None:
        """Start on a rollout."""
        self._send("rollout", (frames, watched))

    def change(self, config: SynchronousConfig) -> None:
        """As `Share.change`."""
        self._send("change", config)
        self._receive()

    def finish(self) -> ShareResult:
        """Wait for the rollout's gradient.

        Raises:
            WorldDiedError: the process is gone.
        """
        result: ShareResult = self._receive()
        result.dtheta = self._dtheta
        return result

    def state(self) -> dict[str, Any]:
        """As `Share.state`."""
        self._send("state")
        state: dict[str, Any] = self._receive()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """As `Share.restore`."""
        self._send("restore", state)
        self._receive()

    def close(self) -> None:
        """End the process."""
        self._channel.close()
        self._process.wait()

    def _send(self, request: str, argument: Any = None) -> None:
        try:
            self._channel.send_bytes(pickle.dumps((request, argument)))
        except OSError as error:
            raise WorldDiedError(self._process) from error

    def _receive(self) -> Any:
        try:
            # Plain pickles: a Connection's own would pass tensors as files from process to process.
            answer, trouble = pickle.loads(self._channel.recv_bytes())  # noqa: S301  # from our own child
        except (EOFError, OSError) as error:
            raise WorldDiedError(self._process) from error
        if trouble is not None:
            raise ShareError(trouble)
        return answer
