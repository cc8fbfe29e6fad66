"""PAAC: parallel advantage actor-critic (Clemente, Castejón and Chandra 2017, Algorithm 1).

The master samples actions for n_e environments from one network; n_w processes carry them out; after
t_max decisions of each environment the one copy of theta is updated with

    d theta   = 1/(n_e t_max) sum_i sum_t (R_t,i - v_t,i) grad log pi(a_t,i | s_t,i) + beta grad H(pi(s_t,i))
    d theta_v = 1/(n_e t_max) sum_i sum_t grad (R_t,i - V(s_t,i))^2

by RMSProp with eps inside the root. Because acting and learning use the same parameters, the activations
of acting are kept and the backward pass goes through them: no second forward pass.

Differences from the paper:
- Policy and value share one network (as in the paper's section 5.1), so one gradient holds both terms; its
  value term has the weight `value_coefficient` (1: as printed).
- `gradient_scale` multiplies the averaged gradient (1: as printed; the authors' code multiplies by 5).
- Rewards are clipped to ±`reward_clip`, as in Mnih et al. 2016, whose procedure the paper follows.
- An episode that is cut off, by `max_frames` or a time limit, is not taken as terminal: the value of its
  last state, discounted, is added to its last reward.
- The learning rate is constant, as printed, or annealed to 0 (Mnih et al. 2016) where so set.
"""

import os
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from backend.specs.algorithms.paac import PaacConfig
from backend.specs.run import RunSpec
from workers.engine.devices import resolve_device
from workers.engine.envs.vector import FinishedEpisode, VectorWorld
from workers.engine.learner import Advance, EpisodeEnd
from workers.engine.losses import actor_critic_loss
from workers.engine.networks import actor_critic
from workers.engine.optimizers import FlatParameters, RMSProp, clip_grad_norm_
from workers.engine.policies import SampledPolicy, sample
from workers.engine.recording import EpisodeRecorder
from workers.engine.returns import n_step_returns
from workers.engine.schedules import linear
from workers.engine.seeds import EpisodeSeeds

RECORDED = 0
"""The environment whose episodes are recorded."""


class Paac:
    """The algorithm at work; see `workers.engine.learner.Learner`."""

    def __init__(self, spec: RunSpec) -> None:
        assert isinstance(spec.config, PaacConfig)
        self.config = spec.config
        self._device = resolve_device(spec.device)
        self.device = str(self._device)
        torch.manual_seed(spec.seed)
        self._seeds = EpisodeSeeds(spec.seed, self.config.n_e)
        self._world = VectorWorld(
            spec,
            environments=self.config.n_e,
            processes=min(self.config.n_w, 4 * (os.cpu_count() or 1)),
            slots=2,
            next_seed=self._seeds.next,
        )
        self.action_names = self._world.action_names
        self.network = actor_critic(
            self.config.network, self._world.observation_shape, len(self.action_names)
        ).to(self._device)
        self._flat = FlatParameters(self.network)
        self._optimizer = RMSProp(
            self._flat.theta, decay=self.config.rmsprop_decay, eps=self.config.rmsprop_eps
        )
        self._generator = torch.Generator(self._device).manual_seed(spec.seed)
        self._recorder = EpisodeRecorder()
        self._slot = 0
        self._world.reset()

    def advance(self, progress: float) -> Advance:
        """One pass of Algorithm 1's outer loop: a rollout and an update."""
        c = self.config
        shared = self._world.shared
        result = Advance(agent_steps=c.n_e * c.t_max, frames=0, updates=1)
        logits, values, actions = [], [], []
        reward_TB = np.empty((c.t_max, c.n_e), np.float32)
        terminal_TB = np.empty((c.t_max, c.n_e), np.bool_)
        for t in range(c.t_max):
            logits_BA, v_B = self.network(self._observation())
            a_B, pi_BA = sample(logits_BA.detach(), self._generator)
            action_B = a_B.cpu().numpy()
            self._slot = 1 - self._slot
            finished = self._world.step(action_B, self._slot)
            reward_TB[t] = shared.reward_B
            if c.reward_clip:
                np.clip(reward_TB[t], -c.reward_clip, c.reward_clip, out=reward_TB[t])
            terminal_TB[t] = shared.terminal_B
            result.frames += int(shared.frames_B.sum())
            self._record(int(action_B[RECORDED]), v_B, pi_BA)
            if finished:
                result.episodes += [self._episode_end(episode) for episode in finished]
                self._bootstrap_truncated(reward_TB[t], terminal_TB[t])
            logits.append(logits_BA)
            values.append(v_B)
            actions.append(a_B)
        with torch.no_grad():
            _, bootstrap_B = self.network(self._observation())
        R_TB = n_step_returns(
            torch.from_numpy(reward_TB).to(self._device),
            torch.from_numpy(terminal_TB).to(self._device),
            bootstrap_B,
            c.gamma,
        )
        loss = actor_critic_loss(
            torch.cat(logits),
            torch.cat(values),
            torch.cat(actions),
            R_TB.reshape(-1),
            beta=c.beta,
            value_coefficient=c.value_coefficient,
        )
        learning_rate = (
            linear(c.learning_rate, progress) if c.learning_rate_schedule == "linear" else c.learning_rate
        )
        self._flat.dtheta.zero_()
        (loss.total * c.gradient_scale).backward()  # type: ignore[no-untyped-call]
        norm = clip_grad_norm_(self._flat.dtheta, c.max_grad_norm)
        self._optimizer.step(self._flat.dtheta, learning_rate)
        result.internals = {
            "loss/policy": loss.policy.item(),
            "loss/value": loss.value.item(),
            "loss/entropy": loss.entropy.item(),
            "optim/grad_norm": norm.item(),
            "optim/learning_rate": learning_rate,
        }
        return result

    def policy(self, seed: int) -> SampledPolicy:
        """Samples from pi with randomness of its own."""
        return SampledPolicy(self.network, self._device, seed)

    def state(self) -> dict[str, Any]:
        """Parameters, accumulator, random state and the episode counters."""
        return {
            "theta": self._flat.theta,
            "g": self._optimizer.g,
            "generator": self._generator.get_state(),
            "episodes_begun": self._seeds.begun,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`; every environment begins a new episode.

        Raises:
            ValueError: the state is of another network.
        """
        if state["theta"].shape != self._flat.theta.shape:
            raise ValueError("the checkpoint is of another network")
        self._flat.theta.copy_(state["theta"])
        self._optimizer.g.copy_(state["g"])
        self._generator.set_state(state["generator"])
        self._seeds.begun = list(state["episodes_begun"])
        self._recorder.clear()
        self._slot = 0
        self._world.reset()

    def close(self) -> None:
        """End the environments' processes."""
        self._world.close()

    def _observation(self) -> torch.Tensor:
        return torch.from_numpy(self._world.shared.observation_SB[self._slot]).to(self._device)

    def _record(self, action: int, v_B: torch.Tensor, pi_BA: torch.Tensor) -> None:
        shared = self._world.shared
        pi_A: NDArray[Any] = pi_BA[RECORDED].cpu().numpy()
        lives = 0 if shared.ended_B[RECORDED] else int(shared.lives_B[RECORDED])
        reward = float(shared.reward_B[RECORDED])
        self._recorder.add(action, reward, float(v_B[RECORDED].detach()), pi_A, lives)

    def _episode_end(self, episode: FinishedEpisode) -> EpisodeEnd:
        end = EpisodeEnd(
            source="",
            seed=episode.seed,
            episode_return=episode.episode_return,
            length_steps=episode.length_steps,
            length_frames=episode.length_frames,
        )
        if episode.environment == RECORDED:
            end.recording, self._recorder = self._recorder, EpisodeRecorder()
        return end

    def _bootstrap_truncated(self, reward_B: NDArray[np.float32], terminal_B: NDArray[np.bool_]) -> None:
        """Close cut-off episodes: what would have followed is added to the reward, the return ends there."""
        shared = self._world.shared
        cut = np.flatnonzero(shared.ended_B & shared.truncated_B)
        if len(cut):
            with torch.no_grad():
                last = torch.from_numpy(shared.final_observation_B[cut]).to(self._device)
                _, v = self.network(last)
            reward_B[cut] += self.config.gamma * v.cpu().numpy()
            terminal_B[cut] = True
