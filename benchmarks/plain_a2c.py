"""A plain A2C loop over a vector environment, as a baseline. Uses torch's default threads."""

from contextlib import closing
from typing import Any

import gymnasium
import numpy as np
import torch
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode

from benchmarks.rows import RowGenerator, RowProgress
from workers.engine.nn.losses import actor_critic_loss
from workers.engine.nn.networks import actor_critic
from workers.engine.nn.returns import n_step_returns

T_MAX = 5


def ale(environment: str, n_e: int, threads: int) -> AtariVectorEnv:
    """ale-py's vector environment with the papers' settings."""
    return AtariVectorEnv(
        gymnasium.spec(environment).kwargs["game"],
        num_envs=n_e,
        num_threads=threads,
        reward_clipping=False,
        use_fire_reset=False,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )


def over_ale(environment: str, *, network: str, n_e: int, threads: int) -> RowGenerator:
    """The loop over `AtariVectorEnv`."""
    return _trained(ale(environment, n_e, threads), network, n_e)


def over_envpool(environment: str, *, network: str, n_e: int, threads: int) -> RowGenerator:
    """The loop over EnvPool."""
    import envpool

    game = environment.removeprefix("ALE/")
    return _trained(envpool.make_gymnasium(game, num_envs=n_e, num_threads=threads), network, n_e)


def _trained(envs: Any, network: str, n_e: int) -> RowGenerator:
    theta = actor_critic(network, (84, 84, 4), int(envs.single_action_space.n))
    optimizer = torch.optim.RMSprop(theta.parameters(), lr=7e-4, eps=1e-5)

    def states(observation: Any) -> torch.Tensor:
        return torch.from_numpy(observation).permute(0, 2, 3, 1).contiguous()

    with closing(envs):
        observation, _ = envs.reset()
        while True:
            logits, values, actions, rewards, dones = [], [], [], [], []
            for _ in range(T_MAX):
                logits_BA, value_B = theta(states(observation))
                action_B = torch.distributions.Categorical(logits=logits_BA.detach()).sample()  # type: ignore[no-untyped-call]
                observation, reward_B, terminated_B, truncated_B, _ = envs.step(
                    action_B.numpy().astype(np.int32)
                )
                logits.append(logits_BA)
                values.append(value_B)
                actions.append(action_B)
                rewards.append(torch.as_tensor(reward_B, dtype=torch.float32).clamp(-1, 1))
                dones.append(torch.as_tensor(terminated_B | truncated_B))
            with torch.no_grad():
                _, bootstrap_B = theta(states(observation))
            R_TB = n_step_returns(torch.stack(rewards), torch.stack(dones), bootstrap_B, 0.99)
            loss = actor_critic_loss(
                torch.cat(logits),
                torch.cat(values),
                torch.cat(actions),
                R_TB.reshape(-1),
                beta=0.01,
                value_coefficient=0.5,
            )
            optimizer.zero_grad()
            loss.total.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(theta.parameters(), 0.5)
            optimizer.step()
            yield RowProgress(T_MAX * n_e)
