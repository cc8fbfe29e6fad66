"""One attempt after another: saved, resumed, stopped, scored, all of it told in the log."""

from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch

from backend.specs.events import (
    AnyEvent,
    CheckpointSaved,
    CheckpointsRemoved,
    Ended,
    Episode,
    Evaluation,
    Points,
    Report,
    Started,
)
from backend.specs.run import parse_run_spec
from tests.workers.engine.training_runs import cartpole, columns, events, only, train
from workers.engine import checkpoint
from workers.engine.control import Control
from workers.engine.evaluation import evaluate, load_policy
from workers.engine.learner import EpisodeEnd, Learner
from workers.engine.training import Training


def test_a_run_tells_its_whole_story(tmp_path: Path) -> None:
    said = train(cartpole({"agent_steps": 4_000}, evaluation_episodes=3), tmp_path)
    assert isinstance(said[0], Started)
    assert isinstance(said[-1], Ended)
    assert (said[-1].state, said[-1].reason) == ("finished", "reached 4,000 agent steps")
    [report] = only(Report, said)[-1:]
    returns = columns(said, "rollout/episode_return")
    assert report.agent_steps == report.frames == 4_000
    assert report.updates == 4_000 // (4 * 5)
    assert report.episodes == len(returns)
    assert report.best_return == max(value for _, value in returns)
    assert report.mean_return_100 == pytest.approx(np.mean([value for _, value in returns[-100:]]))
    [score] = only(Evaluation, said)
    assert score.protocol == "plain"
    assert score.mean_return == np.mean(score.returns)
    assert columns(said, "eval/plain/mean_return") == [(4_000, score.mean_return)]
    for metric in ("loss/policy", "loss/value", "loss/entropy", "optim/grad_norm", "speed/agent_steps_per_s"):
        assert columns(said, metric), metric
    for episode in only(Episode, said):
        with np.load(tmp_path / "replays" / episode.replay, allow_pickle=False) as replay:
            assert replay["rewards"].sum() == episode.episode_return
            assert len(replay["actions"]) == len(replay["values"]) == episode.length_steps
            np.testing.assert_allclose(replay["policies"].sum(1), 1, atol=5e-3)


def test_the_best_recorded_episode_is_kept_however_soon_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[tuple[float, int]] = []
    keep_some = Training._keep_some

    def watched(self: Training, learner: Learner, episode: EpisodeEnd) -> None:
        recorded.append((episode.episode_return, self._journal.counters.agent_steps))
        keep_some(self, learner, episode)

    monkeypatch.setattr(Training, "_keep_some", watched)
    for interval in ("REPLAY_INTERVAL_S", "LEAST_REPLAY_INTERVAL_S"):
        monkeypatch.setattr(f"workers.engine.training.{interval}", 1e9)
    said = only(Episode, train(cartpole({"agent_steps": 7_000}, evaluation_episodes=1), tmp_path))
    best = max(recorded, key=lambda one: one[0])
    assert recorded[0] != best != recorded[-1], "too soon or too late to show anything"
    kept = [(one.episode_return, one.agent_steps) for one in said if one.kind == "training"]
    assert kept == [recorded[0], best], "with where it ended, not where it was written"
    assert [one.agent_steps for one in said] == sorted(one.agent_steps for one in said)
    assert said[-1].kind == "evaluation"


def test_a_stop_keeps_a_checkpoint(tmp_path: Path) -> None:
    control = Control()
    control.stop("enough")
    said = train(cartpole({"wall_time_s": 60}), tmp_path, control=control)
    [ended] = only(Ended, said)
    assert (ended.state, ended.reason) == ("stopped", "enough")
    assert [c.file for c in only(CheckpointSaved, said)] == [checkpoint.newest(tmp_path / "checkpoints")]


def test_a_stop_during_the_last_evaluation_leaves_it_due(tmp_path: Path) -> None:
    control = Control()
    spec = cartpole({"agent_steps": 400}, evaluation_episodes=5)

    def stop_at_the_bound(event: AnyEvent) -> None:
        if isinstance(event, Report) and event.agent_steps == 400:
            control.stop("enough")

    told = Training(spec, tmp_path, control=control, on_event=stop_at_the_bound).run()
    assert (told.state, told.reason) == ("stopped", "stopped during the last evaluation")
    assert not only(Evaluation, events(tmp_path, 1))
    said = train(spec, tmp_path, 2, checkpoint.newest(tmp_path / "checkpoints"))
    assert len(only(Evaluation, said)) == 1
    assert said[-1] == said[-1].model_copy(update={"state": "finished"})


def test_a_stop_right_after_a_checkpoint_has_no_point_to_add(tmp_path: Path) -> None:
    """A run killed behind its checkpoint would lose such a point: a resume begins after that step."""
    control = Control()

    def stop_once_saved(event: AnyEvent) -> None:
        if isinstance(event, CheckpointSaved):
            control.stop("enough")

    spec = cartpole({"wall_time_s": 60}, checkpoint_interval_s=1.5)
    Training(spec, tmp_path, control=control, on_event=stop_once_saved).run()
    said = events(tmp_path, 1)
    for saved in only(CheckpointSaved, said):
        behind = only(Points, said[said.index(saved) :])
        assert all(min(points.agent_steps) > saved.agent_steps for points in behind)


def test_the_last_score_comes_before_the_checkpoint_of_its_step(tmp_path: Path) -> None:
    """The other way round, a resume from that checkpoint would score it once more."""
    spec = cartpole({"wall_time_s": 1}, checkpoint_interval_s=1, evaluation_episodes=1)
    said = train(spec, tmp_path)
    [score], [saved] = only(Evaluation, said), only(CheckpointSaved, said)
    assert score.agent_steps == saved.agent_steps
    assert said.index(score) < said.index(saved)


def test_old_checkpoints_are_thinned(tmp_path: Path) -> None:
    said = train(cartpole({"wall_time_s": 5.5}, checkpoint_interval_s=1), tmp_path)
    removed = [file for event in only(CheckpointsRemoved, said) for file in event.files]
    saved = [event.file for event in only(CheckpointSaved, said)]
    left = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert len(saved) >= 5
    assert removed
    assert left == set(saved) - set(removed)
    assert saved[-1] in left


def test_an_error_is_told_with_its_traceback(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "a1-s000000000001.pt").write_bytes(b"torn")
    said = train(cartpole({"agent_steps": 100}), tmp_path, 2, "a1-s000000000001.pt")
    [ended] = only(Ended, said)
    assert ended.state == "failed"
    assert "DamagedCheckpointError" in (ended.traceback or "")


def test_score_of_a_checkpoint_depends_on_its_seed_only(tmp_path: Path) -> None:
    spec = cartpole({"agent_steps": 1_000})
    train(spec, tmp_path)
    kept = checkpoint.newest(tmp_path / "checkpoints")
    assert kept is not None
    scores = [
        evaluate(
            load_policy(spec, tmp_path / "checkpoints" / kept, 5),
            spec,
            episodes=6,
            seed=seed,
            processes=processes,
        ).returns
        for seed, processes in ((3, 1), (3, 2), (4, 2))
    ]
    assert scores[0] == scores[1] != scores[2]


def test_a_run_that_diverges_fails_and_keeps_no_such_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.algorithms import paac
    from workers.engine.losses import ActorCriticLoss, actor_critic_loss

    updates = count(1)

    def exploding(*arguments: torch.Tensor, **weights: float) -> ActorCriticLoss:
        loss = actor_critic_loss(*arguments, **weights)
        return loss._replace(total=loss.total * float("inf")) if next(updates) > 25 else loss

    monkeypatch.setattr(paac, "actor_critic_loss", exploding)
    said = train(cartpole({"agent_steps": 1_000}), tmp_path)
    [ended] = only(Ended, said)
    assert ended.state == "failed"
    assert (
        ended.reason
        == "DivergedError: optim/grad_norm became nan; a smaller learning rate may keep it finite"
    )
    assert not only(CheckpointSaved, said)


def test_reports_are_true_whatever_the_evaluations(tmp_path: Path) -> None:
    said = train(
        cartpole({"agent_steps": 2_000}, evaluation_episodes=1, evaluation_interval_agent_steps=400), tmp_path
    )
    assert [r.agent_steps for r in only(Report, said)][-1] == 2_000


def test_a_finished_dqn_run_scores_its_best_kept_parameters_anew(tmp_path: Path) -> None:
    config = {
        "evaluation_episodes": 4,
        "evaluation_interval_agent_steps": 400,
        "learning_starts_agent_steps": 100,
        "exploration_anneal_agent_steps": 400,
    }
    spec = parse_run_spec(
        {"algorithm": "dqn", "environment": "CartPole-v1", "stop": {"agent_steps": 2_000}, "config": config}
    )
    said = train(spec, tmp_path)
    *regular, best_kept = only(Evaluation, said)
    assert len(regular) == 5
    best = max(regular, key=lambda one: one.mean_return)
    assert best_kept.checkpoint == best.checkpoint
    assert best_kept.seed not in {one.seed for one in regular}
    policy = load_policy(spec, tmp_path / "checkpoints" / best.checkpoint, best_kept.seed)
    again = evaluate(policy, spec, episodes=4, seed=best_kept.seed, processes=1)
    assert again.returns == best_kept.returns
    [points] = [p for p in only(Points, said) if p.metric == "eval/plain/best_kept_return"]
    assert points.value == [best_kept.mean_return]
    # Nothing of the run's last step comes after its last checkpoint.
    assert [type(event) for event in said if isinstance(event, Evaluation | CheckpointSaved)][
        -1
    ] is CheckpointSaved
