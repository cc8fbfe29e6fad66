"""A share of PAAC's batch: the rollout of some environments and their part of the gradient."""

import json
import pickle
import subprocess
import sys
from dataclasses import dataclass, field
from multiprocessing.connection import Pipe
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.specs.algorithms.paac import PaacConfig
from backend.specs.run import RunSpec
from workers.engine.envs.vector import FinishedEpisode, VectorWorld, WorldDiedError
from workers.engine.learner import EpisodeEnd
from workers.engine.losses import actor_critic_loss
from workers.engine.memory import SharedVectors
from workers.engine.networks import ActorCritic
from workers.engine.optimizers import FlatParameters
from workers.engine.policies import sample
from workers.engine.recording import EpisodeRecorder
from workers.engine.returns import n_step_returns
from workers.engine.seeds import EpisodeSeeds
from workers.engine.unroll import Unroll

RECORDED = 0
"""The environment of the run whose episodes are recorded."""


class ShareError(RuntimeError):
    """An error in a share's process; the message is its traceback."""


class Slice(NamedTuple):
    """Environments `first` to `last - 1` of the run's n_e."""

    first: int
    last: int


@dataclass(slots=True)
class ShareResult:
    """What a share adds to the sums over the whole batch."""

    frames: int = 0
    episodes: list[EpisodeEnd] = field(default_factory=list)
    losses: dict[str, float] = field(default_factory=dict)
    pictures: list[bytes] = field(default_factory=list)
    """JPEGs of the recorded environment's play, while someone watches."""
    dtheta: Any = None
    """(P,) gradient of the batch's mean loss through this share's decisions; None across processes."""


class Share:
    """Acts in its environments for t_max decisions and leaves its part of the gradient in `flat.dtheta`."""

    def __init__(
        self,
        spec: RunSpec,
        slice_: Slice,
        network: ActorCritic,
        flat: FlatParameters,
        device: torch.device,
        *,
        processes: int,
    ) -> None:
        assert isinstance(spec.config, PaacConfig)
        self._config = spec.config
        self._network = network
        self._unroll = Unroll(network.body, None)
        self._flat = flat
        self._device = device
        self._B = slice_.last - slice_.first
        self._recorded = RECORDED - slice_.first
        self._seeds = EpisodeSeeds(spec.seed, range(slice_.first, slice_.last))
        self._world = VectorWorld(
            spec, environments=self._B, processes=processes, slots=1, next_seed=self._seeds.next
        )
        self._generator = torch.Generator(device).manual_seed(spec.seed * 1_000_003 + slice_.first)
        self._recorder = EpisodeRecorder()
        self._world.reset()

    def wait_ready(self) -> None:
        """Its worlds are built already."""

    def begin(self, *, watched: bool) -> None:
        """All else is done in `finish`."""
        self._world.watch(self._recorded if watched and 0 <= self._recorded < self._B else None)

    def change(self, config: PaacConfig) -> None:
        """Go on with other settings."""
        self._config = config

    def finish(self) -> ShareResult:
        """Lines 4 to 17 of Algorithm 1 for these environments."""
        c = self._config
        shared = self._world.shared
        result = ShareResult(dtheta=self._flat.dtheta)
        actions = []
        self._unroll.begin()
        reward_TB = np.empty((c.t_max, self._B), np.float32)
        terminal_TB = np.empty((c.t_max, self._B), np.bool_)
        for t in range(c.t_max):
            with torch.no_grad():
                logits_BA, v_B = self._network.heads(self._unroll.step(self._observation()))
            a_B, pi_BA = sample(logits_BA, self._generator)
            action_B = a_B.cpu().numpy()
            finished = self._world.step(action_B, 0)
            reward_TB[t] = shared.reward_B
            if c.reward_clip:
                np.clip(reward_TB[t], -c.reward_clip, c.reward_clip, out=reward_TB[t])
            terminal_TB[t] = shared.terminal_B
            result.frames += int(shared.frames_B.sum())
            if (picture := self._world.take_picture()) is not None:
                result.pictures.append(picture)
            if 0 <= self._recorded < self._B:
                self._record(action_B, v_B, pi_BA)
            if finished:
                result.episodes += [self._episode_end(episode) for episode in finished]
                self._bootstrap_truncated(reward_TB[t], terminal_TB[t])
            actions.append(a_B)
        with torch.no_grad():
            _, bootstrap_B = self._network(self._observation())
        R_TB = n_step_returns(
            torch.from_numpy(reward_TB).to(self._device),
            torch.from_numpy(terminal_TB).to(self._device),
            bootstrap_B,
            c.gamma,
        )
        features_NF = self._unroll.features()
        loss = actor_critic_loss(
            *self._network.heads(features_NF),
            torch.cat(actions),
            R_TB.reshape(-1),
            beta=c.beta,
            value_coefficient=c.value_coefficient,
        )
        share = self._B / c.n_e
        self._flat.dtheta.zero_()
        (loss.total * share).backward()  # type: ignore[no-untyped-call]
        assert features_NF.grad is not None
        self._unroll.backward(features_NF.grad)
        result.losses = {
            "loss/policy": loss.policy.item() * share,
            "loss/value": loss.value.item() * share,
            "loss/entropy": loss.entropy.item() * share,
        }
        return result

    def state(self) -> dict[str, Any]:
        """Random state and how many episodes each environment has begun."""
        return {"generator": self._generator.get_state(), "episodes_begun": list(self._seeds.begun)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with that randomness, in new episodes."""
        self._generator.set_state(state["generator"])
        self._seeds.begun = list(state["episodes_begun"])
        self._recorder = EpisodeRecorder()
        self._world.reset()

    def close(self) -> None:
        """Close the worlds."""
        self._world.close()

    def _observation(self) -> Tensor:
        return torch.from_numpy(self._world.shared.observation_SB[0]).to(self._device)

    def _record(self, action_B: NDArray[Any], v_B: Tensor, pi_BA: Tensor) -> None:
        shared, i = self._world.shared, self._recorded
        lives = 0 if shared.ended_B[i] else int(shared.lives_B[i])
        self._recorder.add(
            int(action_B[i]), float(shared.reward_B[i]), float(v_B[i]), pi_BA[i].cpu().numpy(), lives
        )

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
                _, v = self._network(torch.from_numpy(shared.final_observation_B[cut]).to(self._device))
            reward_B[cut] += self._config.gamma * v.cpu().numpy()
            terminal_B[cut] = True


class ShareInProcess:
    """A share in a single-threaded process of its own, which shares theta and leaves its dtheta in memory."""

    def __init__(
        self, spec: RunSpec, slice_: Slice, memory: SharedVectors, theta: Tensor, dtheta: Tensor, row: int
    ) -> None:
        self._dtheta = dtheta
        self._channel, theirs = Pipe()
        task = {
            "spec": spec.model_dump(mode="json"),
            "slice": slice_,
            "memory_fd": memory.fd,
            "memory_shape": memory.shape,
            "row": 1 + row,
            "channel_fd": theirs.fileno(),
        }
        command = [sys.executable, "-m", "workers.engine.algorithms.paac_process", json.dumps(task)]
        # Out of the terminal's foreground group: Ctrl-C is the engine's to answer.
        self._process = subprocess.Popen(command, pass_fds=(memory.fd, theirs.fileno()), process_group=0)
        theirs.close()

    def wait_ready(self) -> None:
        """Wait until its worlds are built."""
        self._receive()

    def begin(self, *, watched: bool) -> None:
        """Start on a rollout."""
        self._send("rollout", watched)

    def change(self, config: PaacConfig) -> None:
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
