"""Asynchronous one-step Q-learning, one-step Sarsa and n-step Q-learning (Mnih et al. 2016).

Each actor-learner acts epsilon-greedily on Q(s, .; theta) for up to t_max decisions (I_AsyncUpdate) or to a
terminal state, accumulates the gradient of (y - Q(s, a; theta))^2 over them, and applies it to theta
immediately and without locks. With theta_minus, the target network that all actors share, the targets are

    one-step Q (Algorithm 1)      y_t = r_t + gamma max_a' Q(s_{t+1}, a'; theta_minus)
    one-step Sarsa (section 4)    y_t = r_t + gamma Q(s_{t+1}, a_{t+1}; theta_minus)
    n-step Q (Algorithm S1)       y_t = r_t + gamma y_{t+1},   the last from max_a Q(s_{t+1}, a; theta_minus)

and r_t alone at a terminal state. theta_minus <- theta whenever the frames of all actors together pass a
multiple of `target_update_frames`.

Each actor's epsilon is annealed from 1 to a target over `exploration_anneal_frames` of all actors together;
the target is drawn from three values with probabilities 0.4, 0.3 and 0.3, again every `EPSILON_PERIOD`
decisions of the actor (the paper: periodically).

Differences from the paper:
- Actor-learners are processes, not threads: Python runs one thread at a time.
- The one-step methods, too, act and learn by a copy theta' <- theta taken before each update's decisions
  (as Algorithm S1; Algorithm 1 uses theta itself): theta may change while a gradient is computed.
- theta_minus is copied after the asynchronous update of the step that passes the period, as in Algorithm S1;
  Algorithm 1 copies it before.
- The period after which an actor draws its epsilon again is not stated.
- The gradient's norm is clipped.
- The paper draws the learning rate from LogUniform(1e-4, 1e-2) and prints no epsilon and no initial g of
  RMSProp: `learning_rate`, `rmsprop_eps` and `rmsprop_initial_g` are settings, listed in docs/constants.md.
- A truncated episode (`max_frames` or a time limit) is not treated as terminated, except with `t_max` = 0:
  whole episodes end without a bootstrap (section 9 of the supplement, where actions are continuous).
- A decision in which the environment crashed is dropped; its state is the next state of the one before.
- Observations differ as `workers.engine.envs.atari` describes, initial weights as
  `workers.engine.nn.networks` does; shared Adam is not the paper's.
- With `centre`, off by default, observations are centred by the mean image of random play before training
  (`workers.engine.methods.random_play`). Its decisions are counted as frames, not as agent steps.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from backend.specs.algorithms.async_q import AsyncQConfig
from backend.specs.algorithms.value import ValueConfig
from workers.engine.envs.base import Env
from workers.engine.methods.asynchronous.actor import ActorContext, Decision
from workers.engine.methods.asynchronous.learner import asynchronous_method
from workers.engine.methods.asynchronous.memory import FRAMES, Counts
from workers.engine.methods.base import AlgorithmFactories, Method, Policy
from workers.engine.nn.autograd import create_unroll
from workers.engine.nn.losses import td_loss
from workers.engine.nn.networks import ActionValues, action_values
from workers.engine.nn.optimizers import FlatParameters
from workers.engine.nn.policies import EpsilonGreedyPolicy
from workers.engine.nn.schedules import annealed

EPSILON_PROBABILITIES = (0.4, 0.3, 0.3)
EPSILON_PERIOD = 1_000
"""Decisions of an actor between two draws of its target epsilon."""


def network(config: AsyncQConfig, env: Env) -> ActionValues:
    """The network of a run."""
    n_actions = len(env.action_names)
    return action_values(config.network, env.observation_shape, n_actions, centre=config.centre)


def policy(network: ActionValues, device: torch.device, seed: int) -> Policy:
    """The epsilon-greedy policy that is evaluated."""
    return EpsilonGreedyPolicy(network, device, seed)


def target_frames(config: ValueConfig) -> int:
    """I_target."""
    return config.target_update_frames


class Exploration:
    """One actor's epsilon."""

    def __init__(self, config: AsyncQConfig, rng: np.random.Generator, counts: Counts) -> None:
        self.config = config
        self._rng = rng
        self._counts = counts
        self._decisions_left = 0
        self._which = 0
        self.epsilon = 1.0

    def step(self) -> None:
        """Count a decision: draw a target when it is due, and anneal."""
        if self._decisions_left == 0:
            self._which = int(self._rng.choice(3, p=EPSILON_PROBABILITIES))
            self._decisions_left = EPSILON_PERIOD
        self._decisions_left -= 1
        c = self.config
        target = (c.exploration_eps, c.exploration_eps_low, c.exploration_eps_high)[self._which]
        self.epsilon = annealed(1.0, target, self._counts.total(FRAMES), c.exploration_anneal_frames)

    def state(self) -> dict[str, int]:
        """Plain values."""
        return {"which": self._which, "decisions_left": self._decisions_left}

    def restore(self, state: dict[str, int]) -> None:
        """Continue with the target drawn last."""
        self._which = state["which"]
        self._decisions_left = state["decisions_left"]


class AsyncQ(ABC):
    """What the value methods share; see `ActorAlgorithm`."""

    def __init__(self, context: ActorContext[AsyncQConfig, ActionValues]) -> None:
        self._config = context.config
        self._network = context.network
        self._rng = context.rng
        self._exploration = Exploration(self._config, context.rng, context.counts)
        self._unroll = create_unroll(self._network.body, None)
        self._target_network = network(self._config, context.env)
        FlatParameters(self._target_network, theta=context.theta_minus)
        self._actions: list[int] = []
        self._next_action: int | None = None

    @property
    def epsilon(self) -> float:
        """The current epsilon."""
        return self._exploration.epsilon

    def begin_update(self) -> None:
        """Begin an update's decisions."""
        self._unroll.begin()
        self._actions.clear()

    def choose(self, observation: NDArray[Any]) -> Decision:
        """Epsilon-greedy by Q(s, .; theta'), or the action that was already chosen in this state."""
        with torch.inference_mode():
            q_A = self._network.q(self._unroll.step(torch.from_numpy(observation)))[0].numpy()
        action = self._draw(q_A) if self._next_action is None else self._next_action
        self._next_action = None
        self._actions.append(action)
        return Decision(action, float(q_A.max()), q_A)

    def drop_last(self) -> None:
        """Drop the last decision, in which the environment crashed."""
        self._unroll.drop_last()
        self._next_action = self._actions.pop()

    def learn(self, reward_T: list[float], next_observation: NDArray[Any] | None) -> dict[str, float]:
        """Add the gradient of the squared differences to dtheta."""
        with torch.no_grad():
            y_T = self._targets(torch.tensor(reward_T), next_observation)
        features_TF = self._unroll.features()
        q_TA = self._network.q(features_TF)
        loss = td_loss(q_TA, torch.tensor(self._actions), y_T)
        (loss * len(reward_T)).backward()  # type: ignore[no-untyped-call]
        assert features_TF.grad is not None
        self._unroll.backward(features_TF.grad)
        return {"loss/td": loss.item(), "value/max_q": q_TA.detach().max(-1).values.mean().item()}

    def begin_episode(self) -> None:
        """Drop an action that was chosen for the last state of an episode."""
        self._next_action = None

    def change(self, config: AsyncQConfig) -> None:
        """Continue with this config."""
        self._config = self._exploration.config = config

    def state(self) -> dict[str, Any]:
        """The drawn epsilon and the action already chosen."""
        return {"exploration": self._exploration.state(), "next_action": self._next_action}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue with the drawn epsilon and the action already chosen."""
        self._exploration.restore(state["exploration"])
        self._next_action = state["next_action"]

    @abstractmethod
    def _targets(self, reward_T: Tensor, next_observation: NDArray[Any] | None) -> Tensor:
        """Targets y (T,); `next_observation` as in `learn`."""

    def _draw(self, q_A: NDArray[Any]) -> int:
        self._exploration.step()
        if self._rng.random() < self._exploration.epsilon:
            return int(self._rng.integers(len(q_A)))
        return int(q_A.argmax())


class OneStep(AsyncQ):
    """Algorithm 1; a subclass decides how the next state is valued."""

    def __init__(self, context: ActorContext[AsyncQConfig, ActionValues]) -> None:
        super().__init__(context)
        self._states: list[NDArray[Any]] = []

    def begin_update(self) -> None:
        """Begin an update's decisions."""
        super().begin_update()
        self._states.clear()

    def choose(self, observation: NDArray[Any]) -> Decision:
        """Choose an action, and keep the state for the target of the decision before."""
        self._states.append(observation.copy())
        return super().choose(observation)

    def drop_last(self) -> None:
        """Drop the last decision and its state."""
        super().drop_last()
        self._states.pop()

    def _targets(self, reward_T: Tensor, next_observation: NDArray[Any] | None) -> Tensor:
        next_states = self._states[1:] if next_observation is None else [*self._states[1:], next_observation]
        y_T = reward_T.clone()
        if next_states:
            q_NA = self._target_network(torch.from_numpy(np.concatenate(next_states)))
            y_T[: len(next_states)] += self._config.gamma * self._next_values(q_NA, next_observation)
        return y_T

    @abstractmethod
    def _next_values(self, q_NA: Tensor, next_observation: NDArray[Any] | None) -> Tensor:
        """Value (N,) of the next states, given Q(., .; theta_minus) there."""


def value_method(method: Callable[[ActorContext[AsyncQConfig, ActionValues]], AsyncQ]) -> Method:
    """The `METHOD` of an algorithm whose actor-learners learn Q with this class."""
    return asynchronous_method(AlgorithmFactories(AsyncQConfig, network, policy, method, target_frames))
