"""The loop of an asynchronous actor-learner against Mnih et al. 2016, Algorithms 1, S1 and S2.

An actor plays a script in this process. The test repeats its updates in float64 from what the environment
logged: rewards, returns, gradient, clip, RMSProp with the annealed rate, T, theta and theta_minus.
"""

from collections import defaultdict
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.support.scripted_environment import (
    EVERY_END,
    N_ACTIONS,
    Decision,
    Outcome,
    Script,
    Scripted,
)
from tests.workers.engine.methods.asynchronous.actor_runs import T_MAX, play, running
from workers.engine.methods.asynchronous.memory import AGENT_STEPS, FRAMES, Counts
from workers.engine.nn.networks import GaussianActorCritic
from workers.engine.nn.optimizers import FlatParameters


class Batch(NamedTuple):
    """What an update learns from, by the papers' rules."""

    kept: list[Decision]
    reward_T: list[float]
    after: Any
    """The state after the last kept decision; None if nothing follows it."""
    next_action: Any
    """The action in it."""
    begins: bool
    """Whether its first state is the first of an episode."""


def batch_of(decisions: list[Decision], following: Any, *, clip: float, t_max: int, begins: bool) -> Batch:
    last = decisions[-1]
    kept = [decision for decision in decisions if decision.end != "crashed"]
    reward_T = [float(np.clip(decision.reward, -clip, clip)) for decision in kept]
    if last.end == "crashed":
        return Batch(kept, reward_T, last.state, last.action, begins)
    if last.end == "terminated" or t_max == 0:
        return Batch(kept, reward_T, None, None, begins)
    return Batch(kept, reward_T, last.after, following, begins)


Network = Any
Objective = Callable[[Batch, Network, Network, Any, Any], Tensor]
"""What is minimised: of a batch, by the network of theta and that of theta_minus, under a config, with the
`Features` of each network."""


def tensor(state: Any) -> Tensor:
    return torch.from_numpy(np.asarray(state, np.float64))[None]


def returns(batch: Batch, bootstrap: float, gamma: float) -> list[float]:
    """R <- r_i + gamma R, backwards."""
    R_T, R = [], bootstrap
    for r in reversed(batch.reward_T):
        R = r + gamma * R
        R_T.append(R)
    return R_T[::-1]


class Features:
    """What a body and, if there is one, its LSTM make of the states of one update after another.

    The LSTM's state continues from one update to the next, where the gradient stops, and is 0 at the
    beginning of an episode.
    """

    def __init__(self) -> None:
        self._state: tuple[Tensor, Tensor] | None = None

    def of(self, batch: Batch, body: Network, lstm: Network) -> tuple[list[Tensor], Tensor | None]:
        """Those of each kept state, and of the state after them, if there is one."""
        x_T = [body(tensor(decision.state)) for decision in batch.kept]
        x_after = None if batch.after is None else body(tensor(batch.after))
        if lstm is None:
            return x_T, x_after
        if batch.begins or self._state is None:
            self._state = (torch.zeros(1, lstm.cells), torch.zeros(1, lstm.cells))
        h, c = self._state[0].detach(), self._state[1].detach()
        h_T = []
        for x in x_T:
            h, c = lstm_equations(lstm, x, h, c)
            h_T.append(h)
        self._state = (h, c)
        return h_T, None if x_after is None else lstm_equations(lstm, x_after, h, c)[0]


def lstm_equations(lstm: Network, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The new h and c, each (1, H): those of Hochreiter and Schmidhuber with a forget gate."""
    i, f, o, g = (torch.cat([x, h], 1) @ lstm.weight.T + lstm.bias).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def algorithm_s2(batch: Batch, network: Network, target: Network, c: Any, features: Any) -> Tensor:
    h_T, after = features[""].of(batch, network.body, network.lstm)
    R = 0.0 if after is None else float(network.heads(after)[1].detach())
    total = torch.zeros(())
    for decision, h, R_t in zip(batch.kept, h_T, returns(batch, R, c.gamma), strict=True):
        logits, v = network.heads(h)
        log_pi = logits[0].log_softmax(0)
        entropy = -(log_pi.exp() * log_pi).sum()
        total = total - log_pi[int(decision.action)] * (R_t - v[0].detach()) - c.beta * entropy
        total = total + c.value_coefficient * (R_t - v[0]) ** 2
    return total


def gaussian_s2(batch: Batch, network: GaussianActorCritic, target: Network, c: Any, features: Any) -> Tensor:
    policy_T, _ = features["policy"].of(batch, network.policy_body, network.policy_lstm)
    value_T, after = features["value"].of(batch, network.value_body, network.value_lstm)
    R = 0.0 if after is None else float(network.value_head(after)[0].detach())
    total = torch.zeros(())
    R_T = returns(batch, R, c.gamma)
    for decision, policy, value, R_t in zip(batch.kept, policy_T, value_T, R_T, strict=True):
        mu, variance = network.policy_head(policy)
        log_2pi_variance = torch.log(2 * torch.pi * variance[0])
        distance = (tensor(decision.action)[0] - mu[0]) ** 2
        log_pi = -distance / (2 * variance[0]) - 0.5 * log_2pi_variance
        entropy = 0.5 * (log_2pi_variance + 1)
        v = network.value_head(value)[0]
        total = total - log_pi.sum() * (R_t - v.detach()) - c.beta * entropy
        total = total + c.value_coefficient * (R_t - v) ** 2
    return total


def squared(batch: Batch, network: Network, y_T: list[float]) -> Tensor:
    total = torch.zeros(())
    for decision, y in zip(batch.kept, y_T, strict=True):
        total = total + (y - network(tensor(decision.state))[0, int(decision.action)]) ** 2
    return total


def algorithm_s1(batch: Batch, network: Network, target: Network, c: Any, features: Any) -> Tensor:
    R = 0.0 if batch.after is None else float(target(tensor(batch.after)).detach().max())
    return squared(batch, network, returns(batch, R, c.gamma))


def one_step(batch: Batch, network: Network, c: Any, value: Callable[[Any, Any], float]) -> Tensor:
    following = [(d.state, d.action) for d in batch.kept[1:]]
    following += [] if batch.after is None else [(batch.after, batch.next_action)]
    y_T = list(batch.reward_T)
    for i, (state, action) in enumerate(following):
        y_T[i] += c.gamma * value(state, action)
    return squared(batch, network, y_T)


def algorithm_1(batch: Batch, network: Network, target: Network, c: Any, features: Any) -> Tensor:
    return one_step(batch, network, c, lambda state, _: float(target(tensor(state)).detach().max()))


def sarsa(batch: Batch, network: Network, target: Network, c: Any, features: Any) -> Tensor:
    return one_step(batch, network, c, lambda state, a: float(target(tensor(state)).detach()[0, int(a)]))


def epsilon(value: float) -> dict[str, Any]:
    return dict.fromkeys(("exploration_eps", "exploration_eps_low", "exploration_eps_high"), value)


GREEDY = epsilon(0.0) | {"exploration_anneal_frames": 0}
"""So that the test knows the action that Sarsa draws in the last state of a truncated episode."""
CASES: list[tuple[str, Objective, dict[str, Any]]] = [
    ("a3c", algorithm_s2, {"max_grad_norm": 4.0, "beta": 0.05, "value_coefficient": 0.7}),
    ("a3c", gaussian_s2, {"max_grad_norm": 8.0, "beta": 0.05, "value_coefficient": 0.7, "recurrent": False}),
    ("a3c", gaussian_s2, {"max_grad_norm": 8.0, "t_max": 0, "recurrent": False}),
    ("a3c", algorithm_s2, {"max_grad_norm": 1.0, "beta": 0.05, "recurrent": True}),
    ("a3c", gaussian_s2, {"max_grad_norm": 4.0, "beta": 0.05, "recurrent": True}),
    ("a3c", gaussian_s2, {"max_grad_norm": 4.0, "t_max": 0, "recurrent": True}),
    ("n_step_q", algorithm_s1, {"max_grad_norm": 8.0, "target_update_frames": 4}),
    ("one_step_q", algorithm_1, {"max_grad_norm": 8.0, "target_update_frames": 4}),
    ("one_step_sarsa", sarsa, {"max_grad_norm": 8.0, "target_update_frames": 4} | GREEDY),
    ("one_step_sarsa", sarsa, {"max_grad_norm": 8.0, "target_update_frames": 4}),
]


@pytest.mark.parametrize(
    ("algorithm", "objective", "config"), CASES, ids=lambda case: getattr(case, "__name__", None)
)
def test_actor_repeats_its_algorithm_update_after_update(
    script: Script, algorithm: str, objective: Objective, config: dict[str, Any]
) -> None:
    outcomes = EVERY_END
    if objective is sarsa and "exploration_eps" not in config:
        outcomes = [Outcome(r, "terminated" if end == "truncated" else end) for r, end in EVERY_END]
    with running(script, algorithm, outcomes, continuous=objective is gaussian_s2, **config) as run:
        c = run.config
        network = deepcopy(run.network).double()
        flat = FlatParameters(network)
        target = deepcopy(network)
        target_flat = FlatParameters(target)
        g = run.vectors.statistics(c)["g"].double()
        made = play(run, 12)
    T = frames = copies = 0
    features: dict[str, Features] = defaultdict(Features)
    norms = []
    begins = True
    for k, update in enumerate(made[:-1]):
        following = made[k + 1].decisions[0].action
        if objective is sarsa and update.decisions[-1].end == "truncated":
            following = network(tensor(update.decisions[-1].after)).argmax()
        batch = batch_of(update.decisions, following, clip=c.reward_clip, t_max=c.t_max, begins=begins)
        begins = update.decisions[-1].end != ""
        if batch.kept:
            flat.dtheta.zero_()
            objective(batch, network, target, c, features).backward()  # type: ignore[no-untyped-call]
            d = flat.dtheta
            norms.append(float(d.norm()))
            d = d * min(1.0, c.max_grad_norm / norms[-1])
            g = c.rmsprop_decay * g + (1 - c.rmsprop_decay) * d**2
            flat.theta.sub_(c.learning_rate * (1 - T / T_MAX) * d / (g + c.rmsprop_eps).sqrt())
        T += len(update.decisions)
        before, frames = frames, frames + len(batch.kept)  # no frame passes in a crash
        if algorithm != "a3c" and frames // c.target_update_frames > before // c.target_update_frames:
            target_flat.theta.copy_(flat.theta)
            copies += 1
        torch.testing.assert_close(update.theta.double(), flat.theta, rtol=0, atol=2e-6, msg=f"update {k}")
        torch.testing.assert_close(
            update.theta_minus.double(), target_flat.theta, rtol=0, atol=2e-6, msg=f"theta_minus {k}"
        )
    ends = {decision.end for update in made[:-1] for decision in update.decisions}
    assert ends == {outcome.end for outcome in outcomes}
    assert min(norms) < c.max_grad_norm < max(norms), norms
    assert copies >= 4 or algorithm == "a3c"


def test_crash_in_the_first_decision_of_an_update_is_not_learned_from(script: Script) -> None:
    with running(script, "n_step_q", [Outcome(1.0), Outcome(0.0, "crashed"), Outcome(1.0)], t_max=1) as run:
        theta = [update.theta for update in play(run, 3)]
        assert torch.equal(theta[1], theta[0])
        assert not torch.equal(theta[2], theta[1])
        assert run.counts.total(AGENT_STEPS) == 3
        assert [episode.crashed for episode in run.actors[0].report.episodes] == [True]


@pytest.mark.parametrize("algorithm", ["n_step_q", "one_step_sarsa"])
def test_actor_acts_at_random_with_the_annealed_epsilon(script: Script, algorithm: str) -> None:
    """It falls from 1 to 0.2 over 500 frames and stays there."""
    config = epsilon(0.2) | {"exploration_anneal_frames": 500, "learning_rate": 1e-30, "t_max": 5}
    with running(script, algorithm, [Outcome(0.0)], agent_steps=10**6, **config) as run:
        play(run, 150)
        with torch.no_grad():
            best = run.network(torch.from_numpy(np.stack([d.state for d in Scripted.decisions]))).argmax(-1)
    explored = np.array([int(d.action) for d in Scripted.decisions]) != best.numpy()
    for window, mean in ((slice(0, 250), 0.8), (slice(250, 500), 0.4), (slice(500, 750), 0.2)):
        p = mean * (N_ACTIONS - 1) / N_ACTIONS  # a random action may be the best one
        share = explored[window].mean()
        assert abs(share - p) <= 4 * (p * (1 - p) / 250) ** 0.5, (window, share)


def test_continuous_actions_are_drawn_with_the_standard_deviation(script: Script) -> None:
    with running(
        script,
        "a3c",
        [Outcome(0.0)],
        continuous=True,
        agent_steps=10**6,
        learning_rate=1e-30,
        t_max=5,
        recurrent=False,
    ) as run:
        with torch.no_grad():
            run.network.variance.bias.fill_(np.log(np.expm1(0.04)))
        play(run, 200)
        states = torch.from_numpy(np.stack([decision.state for decision in Scripted.decisions]))
        with torch.no_grad():
            mu, variance = run.network.policy_head(run.network.policy_body(states))
    actions = np.stack([decision.action for decision in Scripted.decisions])
    z = (actions - mu.numpy()) / np.sqrt(variance.numpy())[:, None]
    assert abs(z.mean()) <= 4 / z.size**0.5
    assert abs((z**2).mean() - 1) <= 4 * (2 / z.size) ** 0.5


def test_target_is_copied_when_two_actors_pass_its_period_together(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither alone passes it: the second one acts while the first one counts."""
    with running(
        script, "n_step_q", [Outcome(1.0)], actors=2, t_max=3, target_update_frames=5, agent_steps=10**6
    ) as run:
        first, second = run.actors
        total, reads = Counts.total, 0

        def interrupted(counts: Counts, column: int) -> int:
            nonlocal reads
            value = total(counts, column)
            if column == FRAMES:
                reads += 1
                if reads == 4:  # one for each of t_max decisions, and the one that counts
                    second.update()
            return value

        monkeypatch.setattr(Counts, "total", interrupted)
        before = run.vectors.theta_minus.clone()
        first.update()
        assert total(run.counts, FRAMES) == 6
        assert not torch.equal(run.vectors.theta_minus, before)
        assert torch.equal(run.vectors.theta_minus, run.vectors.theta)
