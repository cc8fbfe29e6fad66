"""PAAC's groups of environments, on the CPU and on a GPU, centre observations by one image."""

import numpy as np
import pytest
import torch

from tests.support.devices import GPU
from tests.workers.engine.contract_runs import small
from workers.engine.methods import random_play
from workers.engine.methods.paac.learner import PaacLearner
from workers.engine.methods.random_play import play_randomly
from workers.engine.methods.registry import METHODS
from workers.engine.nn.devices import Acceleration

ON_GPU = [pytest.param("cuda", groups, marks=GPU) for groups in (1, 2)]


@pytest.mark.service
@pytest.mark.parametrize(("device", "groups"), [("cpu", 1), ("cpu", 2), *ON_GPU])
def test_groups_centre_by_the_same_image(device: str, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_play, "RANDOM_DECISIONS", 200)
    config = {"centre": True, "n_e": 4, "n_w": 1, "evaluation_episodes": 1}
    spec = small("paac", "Catch-v0", config=config, stop={"agent_steps": 400})
    mean, deviation = play_randomly(spec)[0].mean_and_deviation()
    wanted = torch.from_numpy(np.append(mean, deviation).astype(np.float32))
    paac = PaacLearner(
        spec.model_copy(update={"device": device}),
        METHODS["paac"].factories,
        acceleration=Acceleration(groups=groups),
    )
    try:
        for _ in range(4):
            result = paac.advance(0.0, watched=False)
        assert all(np.isfinite(value) for value in result.metrics.values())
        state = paac.state()
        image = slice(0, wanted.numel())
        assert torch.equal(state["theta"][image], wanted)
        assert not state["g"][image].any()
        assert state["g"][wanted.numel() :].any()
    finally:
        paac.close()
