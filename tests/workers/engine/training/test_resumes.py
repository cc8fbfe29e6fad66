"""A run that goes on from a checkpoint, with its own settings or others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from backend.specs.events import (
    CheckpointSavedEvent,
    EndedEvent,
    EpisodeEvent,
    PointsEvent,
    StartedEvent,
)
from tests.support.engine_process import logged
from tests.workers.engine.training.training_runs import cartpole, columns, only, train
from workers.engine.training import checkpoint


@pytest.mark.parametrize("n_w", [1, pytest.param(2, marks=pytest.mark.long)])
def test_two_resumes_of_one_checkpoint_agree(tmp_path: Path, n_w: int) -> None:
    train(cartpole({"agent_steps": 2_000}, n_w=n_w), tmp_path)
    kept = checkpoint.newest(tmp_path / "checkpoints")
    spec = cartpole({"agent_steps": 5_000}, n_w=n_w)
    second, third = train(spec, tmp_path, 2, kept), train(spec, tmp_path, 3, kept)
    assert columns(second, "rollout/episode_return") == columns(third, "rollout/episode_return")
    theta = [
        checkpoint.load(tmp_path / "checkpoints" / checkpoint.file_name(attempt, 5_000))["learner"]["theta"]
        for attempt in (2, 3)
    ]
    assert torch.equal(theta[0], theta[1])
    assert second[0] == second[0].model_copy(update={"resumed_from": kept, "agent_steps": 2_000})
    assert min(step for step, _ in columns(second, "rollout/episode_return")) > 2_000


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"n_w": 1}, id="one"),
        pytest.param({"n_w": 2, "n_e": 5}, id="two", marks=pytest.mark.long),
        pytest.param({"algorithm": "paac_q"}, id="paac_q"),
    ],
)
def test_resume_equals_never_having_stopped(tmp_path: Path, config: dict[str, Any]) -> None:
    """The same seed gives the same series, resumed in the midst of episodes or not."""
    whole = train(cartpole({"agent_steps": 4_000}, **config), tmp_path / "whole")
    first = train(cartpole({"agent_steps": 2_000}, **config), tmp_path / "parts")
    kept = checkpoint.newest(tmp_path / "parts" / "checkpoints")
    second = train(cartpole({"agent_steps": 4_000}, **config), tmp_path / "parts", 2, kept)
    for metric in ("rollout/episode_return", "rollout/episode_length"):
        parts = columns(first, metric) + columns(second, metric)
        assert parts == columns(whole, metric)
    theta = [
        checkpoint.load(tmp_path / run / "checkpoints" / checkpoint.file_name(attempt, 4_000))["learner"][
            "theta"
        ]
        for run, attempt in (("whole", 1), ("parts", 2))
    ]
    assert torch.equal(theta[0], theta[1])
    for episode in only(EpisodeEvent, second):
        with np.load(tmp_path / "parts" / "replays" / episode.replay, allow_pickle=False) as replay:
            assert len(replay["actions"]) == episode.length_steps, "no record that lacks its beginning"


def test_resume_at_the_end_adds_no_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.engine.training.usage.INTERVAL_S", 0.0)  # as after a long sleep
    spec = cartpole({"agent_steps": 2_000})
    train(spec, tmp_path)
    again = train(spec, tmp_path, 2, checkpoint.newest(tmp_path / "checkpoints"))
    assert only(PointsEvent, again) == []
    assert only(EndedEvent, again)[0].reason == "reached 2,000 agent steps"


def test_resume_with_other_worker_counts_plays_new_episodes(tmp_path: Path) -> None:
    first = train(cartpole({"agent_steps": 2_000}), tmp_path)
    kept = checkpoint.newest(tmp_path / "checkpoints")
    second = train(cartpole({"agent_steps": 4_000}, n_e=8), tmp_path, 2, kept)
    assert only(EndedEvent, second)[0].state == "finished", second[-1]
    assert columns(second, "rollout/episode_return") != columns(first, "rollout/episode_return")


@pytest.mark.parametrize(
    "other",
    [{"n_e": 8}, {"n_e": 2}, pytest.param({"n_w": 2}, marks=pytest.mark.long), {"beta": 0.5, "t_max": 10}],
)
def test_fork_continues_with_other_settings(tmp_path: Path, other: dict[str, Any]) -> None:
    train(cartpole({"agent_steps": 1_000}), tmp_path)
    [saved] = only(CheckpointSavedEvent, logged(tmp_path, 1))[-1:]
    said = train(cartpole({"agent_steps": 2_000}, **other), tmp_path, attempt=2, resume=saved.file)
    assert only(StartedEvent, said)[0].agent_steps == 1_000
    [ended] = only(EndedEvent, said)
    assert (ended.state, ended.reason[:8]) == ("finished", "reached ")


def test_fork_with_another_seed_samples_other_actions() -> None:
    from workers.engine.methods.paac.learner import PaacLearner
    from workers.engine.methods.paac.paac import METHOD

    spec = cartpole({"agent_steps": 100})
    parent, resumed, forked = (
        PaacLearner(s, METHOD.factories) for s in (spec, spec, spec.model_copy(update={"seed": 7}))
    )
    began = forked.state()["shares"][0]["generator"]
    parent.advance(0.0, watched=False)
    state = parent.state()
    resumed.restore(state)
    forked.restore(state)
    assert torch.equal(resumed.state()["shares"][0]["generator"], state["shares"][0]["generator"])
    assert torch.equal(forked.state()["shares"][0]["generator"], began)
    assert not torch.equal(began, state["shares"][0]["generator"])
    episodes = [state_of["shares"][0]["episodes_begun"] for state_of in (state, forked.state())]
    assert all(after > before for before, after in zip(*episodes, strict=True))
    for learner in (parent, resumed, forked):
        learner.close()
