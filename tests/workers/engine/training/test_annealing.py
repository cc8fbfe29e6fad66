"""A linear learning rate falls over the run's own number of agent steps, where there is one."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from backend.specs.run import parse_run_spec
from tests.support.waiting import Patience
from tests.workers.engine.training.training_runs import cartpole, columns, train
from workers.engine.methods.registry import METHODS
from workers.engine.training import checkpoint

LINEAR: dict[str, Any] = {
    "learning_rate_schedule": "linear",
    "learning_rate": 0.01,
    "scale_learning_rate": False,
    "n_w": 1,
}


def test_resume_keeps_the_schedule_or_extends_it_to_the_new_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One report, at the end, also where the updates take longer than between two reports.
    monkeypatch.setattr("workers.engine.training.loop.REPORT_INTERVAL_S", math.inf)
    train(cartpole({"agent_steps": 400}, **LINEAR), tmp_path)
    newest = checkpoint.newest(tmp_path / "checkpoints")
    longer = cartpole({"agent_steps": 800}, **LINEAR)
    kept = longer.model_copy(update={"annealing_agent_steps": 400})
    rates = {
        attempt: columns(train(spec, tmp_path, attempt, newest), "optim/learning_rate")
        for attempt, spec in ((2, kept), (3, longer))
    }
    assert {rate for _, rate in rates[2]} == {0.0}
    # The mean over the updates from 400 to 780 steps, n_e t_max = 20 apart.
    assert [rate for _, rate in rates[3]] == [
        pytest.approx(0.01 * (1 - sum(range(400, 800, 20)) / 20 / 800), rel=1e-6)
    ]


@pytest.mark.service
def test_actor_learners_learn_nothing_after_the_end_of_the_schedule() -> None:
    config = {"n_actors": 1, "learning_rate_schedule": "linear", "evaluation_episodes": 0}
    request = {
        "algorithm": "a3c",
        "environment": "CartPole-v1",
        "config": config,
        "annealing_agent_steps": 100,
    }
    learner = METHODS["a3c"].learner(parse_run_spec(request | {"stop": {"agent_steps": 600}}))
    try:
        initial = learner.state()["theta"].clone()
        steps = 0
        thetas: list[torch.Tensor] = []
        for wanted in (200, 600):
            patience = Patience()
            while patience.lasts() and steps < wanted:
                steps += learner.advance(0.0, watched=False).agent_steps
            thetas.append(learner.state()["theta"].clone())
    finally:
        learner.close()
    assert not torch.equal(initial, thetas[0])
    assert torch.equal(*thetas)
