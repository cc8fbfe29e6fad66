"""The loop of an asynchronous actor-learner against Mnih et al. 2016, Algorithms 1, S1 and S2.

An actor plays a script in this process. The test repeats its updates in float64 from what the environment
logged: rewards, returns, gradient, clip, RMSProp with the annealed rate, T, theta and theta_minus.
"""

from collections import defaultdict
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

from tests.support.scripted_environment import (
    EVERY_END,
    N_ACTIONS,
    Decision,
    Outcome,
    Script,
    Scripted,
)
from tests.workers.engine.methods.asynchronous.actor_runs import T_MAX, play, running
from tests.workers.engine.methods.asynchronous.oracles import (
    Batch,
    Features,
    Objective,
    algorithm_1,
    algorithm_s1,
    algorithm_s2,
    gaussian_s2,
    q_values,
    sarsa,
)
from workers.engine.methods.asynchronous.memory import AGENT_STEPS, FRAMES, Counts
from workers.engine.nn.optimizers import FlatParameters


def batch_of(decisions: list[Decision], following: Any, *, clip: float, t_max: int, begins: bool) -> Batch:
    last = decisions[-1]
    kept = [decision for decision in decisions if decision.end != "crashed"]
    learned = (
        [decision.state for decision in kept],
        [decision.action for decision in kept],
        [float(np.clip(decision.reward, -clip, clip)) for decision in kept],
    )
    if last.end == "crashed":
        return Batch(*learned, last.state, last.action, begins)
    if last.end == "terminated" or t_max == 0:
        return Batch(*learned, None, None, begins)
    return Batch(*learned, last.after, following, begins)


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
    features = defaultdict[str, Features](Features)
    norms = []
    begins = True
    for k, update in enumerate(made[:-1]):
        following = made[k + 1].decisions[0].action
        if objective is sarsa and update.decisions[-1].end == "truncated":
            following = q_values(network, update.decisions[-1].after).argmax()
        batch = batch_of(update.decisions, following, clip=c.reward_clip, t_max=c.t_max, begins=begins)
        begins = update.decisions[-1].end != ""
        if batch.state_T:
            flat.dtheta.zero_()
            objective(batch, network, target, c, features).backward()  # type: ignore[no-untyped-call]
            d = flat.dtheta
            norms.append(float(d.norm()))
            d = d * min(1.0, c.max_grad_norm / norms[-1])
            g = c.rmsprop_decay * g + (1 - c.rmsprop_decay) * d**2
            flat.theta.sub_(c.learning_rate * (1 - T / T_MAX) * d / (g + c.rmsprop_eps).sqrt())
        T += len(update.decisions)
        before, frames = frames, frames + len(batch.state_T)  # no frame passes in a crash
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
