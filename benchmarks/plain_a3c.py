"""An A3C like ikostrikov/pytorch-a3c: what a well-known small implementation reaches on this machine.

As there: one single-threaded process per actor-learner; parameters in shared memory, copied before each
update; a separate graph of one state for every decision; after 20 decisions generalised advantages with
lambda 1, the sum of their losses, one backward pass, clipping, and Adam with shared moments. As in our
preset, with which it is compared: the network `compact` with its LSTM, and four stacked cropped 42×42 frames.
"""

from ctypes import Array, c_longlong

import numpy as np
import torch
from torch import Tensor

from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.atari import AtariConfig
from benchmarks.rows import RowGenerator
from benchmarks.step_counter import count_agent_steps
from workers.engine.envs import make_env
from workers.engine.methods.asynchronous.a3c import LSTM_CELLS
from workers.engine.nn.devices import prepare_torch
from workers.engine.nn.networks import ActorCritic, actor_critic, as_input

T_MAX = 20
GAMMA, LAMBDA, BETA, VALUE_COEFFICIENT = 0.99, 1.0, 0.01, 0.5
LEARNING_RATE, MAX_GRAD_NORM = 1e-4, 50.0


def trained(environment: str, *, processes: int) -> RowGenerator:
    """Train with this many actor-learners."""
    prepare_torch()
    shared = _network(environment).share_memory()
    optimizer = torch.optim.Adam(shared.parameters(), lr=LEARNING_RATE)
    for p in shared.parameters():
        optimizer.state[p] = {
            "step": torch.zeros(()),
            "exp_avg": torch.zeros_like(p),
            "exp_avg_sq": torch.zeros_like(p),
        }
        for moment in optimizer.state[p].values():
            moment.share_memory_()
    return count_agent_steps(_act_and_learn, processes, environment, shared, optimizer)


def _network(environment: str) -> ActorCritic:
    n_actions = len(ENVIRONMENTS[environment].action_names)
    return actor_critic("compact", (42, 42, 4), n_actions, lstm_cells=LSTM_CELLS)


def _act_and_learn(
    k: int,
    counts: "Array[c_longlong]",
    environment: str,
    shared: ActorCritic,
    optimizer: torch.optim.Optimizer,
) -> None:
    prepare_torch()
    torch.manual_seed(k)
    env = make_env(environment, AtariConfig(observation_size="42x42", crop=True))
    theta = _network(environment)
    assert theta.lstm is not None
    observation = np.empty((1, *env.observation_shape), np.uint8)
    seeds = iter(range(k * 2**20, 2**32))

    def forward(state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
        assert theta.lstm is not None
        h, c = theta.lstm(theta.body(as_input(torch.from_numpy(observation))), state)
        logits_1A, value_1 = theta.heads(h)
        return logits_1A, value_1, (h, c)

    episode_over = True
    while True:
        theta.load_state_dict(shared.state_dict())
        if episode_over:
            env.reset(next(seeds), observation[0])
            state = (torch.zeros(1, LSTM_CELLS), torch.zeros(1, LSTM_CELLS))
        else:
            state = (state[0].detach(), state[1].detach())
        values, log_pis, rewards, entropies = [], [], [], []
        for _ in range(T_MAX):
            logits_1A, value_1, state = forward(state)
            log_pi_1A = logits_1A.log_softmax(-1)
            pi_1A = log_pi_1A.exp()
            action_11 = pi_1A.detach().multinomial(1)
            step = env.step(int(action_11), observation[0])
            counts[k] += 1
            episode_over = step.episode_over
            values.append(value_1)
            log_pis.append(log_pi_1A.gather(1, action_11)[:, 0])
            entropies.append(-(log_pi_1A * pi_1A).sum(1))
            rewards.append(min(max(step.reward, -1.0), 1.0))
            if episode_over:
                break
        with torch.no_grad():
            R = torch.zeros(1) if episode_over else forward(state)[1]
        loss = _loss(values, log_pis, rewards, entropies, R)
        theta.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(theta.parameters(), MAX_GRAD_NORM)
        for local, global_ in zip(theta.parameters(), shared.parameters(), strict=True):
            global_.grad = local.grad
        optimizer.step()


def _loss(
    values: list[Tensor], log_pis: list[Tensor], rewards: list[float], entropies: list[Tensor], R: Tensor
) -> Tensor:
    """Sum of both losses and the entropy over an update's decisions, computed backwards."""
    policy_loss, value_loss = torch.zeros(1), torch.zeros(1)
    advantage, after = torch.zeros(1), R
    for value, log_pi, reward, entropy in zip(
        reversed(values), reversed(log_pis), reversed(rewards), reversed(entropies), strict=True
    ):
        R = reward + GAMMA * R
        value_loss = value_loss + 0.5 * (R - value) ** 2
        delta = reward + GAMMA * after - value.detach()
        advantage = GAMMA * LAMBDA * advantage + delta
        policy_loss = policy_loss - log_pi * advantage - BETA * entropy
        after = value.detach()
    return (policy_loss + VALUE_COEFFICIENT * value_loss).sum()
