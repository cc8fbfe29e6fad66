"""One attempt after another: saved, resumed, stopped, scored, all of it logged."""

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from backend.specs.events import (
    AnyEvent,
    CheckpointSavedEvent,
    CheckpointsRemovedEvent,
    EndedEvent,
    EpisodeEvent,
    EvaluationEvent,
    LogEvent,
    PointsEvent,
    ProvenanceEvent,
    ReportEvent,
    StartedEvent,
    StartingEvent,
)
from backend.specs.run import parse_run_spec
from tests.support.engine_process import logged
from tests.workers.engine.training.training_runs import cartpole, columns, only, train
from workers.engine.methods.base import StepResult
from workers.engine.methods.paac.learner import PaacLearner
from workers.engine.training import checkpoint
from workers.engine.training.control import Control
from workers.engine.training.evaluation import evaluate, load_policy
from workers.engine.training.loop import Training


@pytest.mark.service
def test_run_logs_every_event_in_order(tmp_path: Path) -> None:
    said = train(cartpole({"agent_steps": 4_000}, evaluation_episodes=3), tmp_path)
    assert isinstance(said[0], ProvenanceEvent)
    phases = only(StartingEvent, said)
    assert [type(event) for event in said[1 : len(phases) + 2]] == [StartingEvent] * len(phases) + [
        StartedEvent
    ]
    assert isinstance(said[-1], EndedEvent)
    assert (said[-1].state, said[-1].reason) == ("finished", "reached 4,000 agent steps")
    [report] = only(ReportEvent, said)[-1:]
    returns = columns(said, "rollout/episode_return")
    assert report.agent_steps == report.frames == 4_000
    assert report.updates == 4_000 // (4 * 5)
    assert report.episodes == len(returns)
    assert report.best_return == max(value for _, value in returns)
    assert report.mean_return_100 == pytest.approx(np.mean([value for _, value in returns[-100:]]))
    [score] = only(EvaluationEvent, said)
    assert score.protocol == "plain"
    assert score.mean_return == np.mean(score.returns)
    assert columns(said, "eval/plain/mean_return") == [(4_000, score.mean_return)]
    for metric in ("loss/policy", "loss/value", "loss/entropy", "optim/grad_norm", "speed/agent_steps_per_s"):
        assert columns(said, metric), metric
    for episode in only(EpisodeEvent, said):
        with np.load(tmp_path / "replays" / episode.replay, allow_pickle=False) as replay:
            assert replay["rewards"].sum() == episode.episode_return
            assert len(replay["actions"]) == len(replay["values"]) == episode.length_steps
            np.testing.assert_allclose(replay["policies"].sum(1), 1, atol=5e-3)


@pytest.mark.service
def test_best_recorded_episode_is_kept_within_the_replay_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[tuple[float, int]] = []
    advance, agent_steps = PaacLearner.advance, 0

    def seen(self: PaacLearner, progress: float, *, watched: bool) -> StepResult:
        nonlocal agent_steps
        made = advance(self, progress, watched=watched)
        agent_steps += made.agent_steps
        recorded.extend(
            (episode.episode_return, agent_steps)
            for episode in made.episodes
            if episode.recording is not None
        )
        return made

    monkeypatch.setattr(PaacLearner, "advance", seen)
    for interval in ("REPLAY_INTERVAL_S", "MIN_REPLAY_INTERVAL_S"):
        monkeypatch.setattr(f"workers.engine.training.replays.{interval}", 1e9)
    said = only(EpisodeEvent, train(cartpole({"agent_steps": 7_000}, evaluation_episodes=1), tmp_path))
    best = max(recorded, key=lambda episode: episode[0])
    assert recorded[0] != best != recorded[-1], "too soon or too late to show anything"
    kept = [(event.episode_return, event.agent_steps) for event in said if event.kind == "training"]
    assert kept == [recorded[0], best], "with where it ended, not where it was written"
    assert [event.agent_steps for event in said] == sorted(event.agent_steps for event in said)
    assert said[-1].kind == "evaluation"


def test_stop_saves_a_checkpoint(tmp_path: Path) -> None:
    control = Control()
    control.stop("enough")
    said = train(cartpole({"wall_time_s": 60}), tmp_path, control=control)
    [ended] = only(EndedEvent, said)
    assert (ended.state, ended.reason) == ("stopped", "enough")
    assert [c.file for c in only(CheckpointSavedEvent, said)] == [checkpoint.newest(tmp_path / "checkpoints")]


@pytest.mark.service
def test_stop_during_the_last_evaluation_leaves_it_due(tmp_path: Path) -> None:
    control = Control()
    spec = cartpole({"agent_steps": 400}, evaluation_episodes=5)

    def stop_at_the_bound(event: AnyEvent) -> None:
        if isinstance(event, ReportEvent) and event.agent_steps == 400:
            control.stop("enough")

    reported = Training(spec, tmp_path, control=control, on_event=stop_at_the_bound).run()
    assert (reported.state, reported.reason) == ("stopped", "stopped during the last evaluation")
    assert not only(EvaluationEvent, logged(tmp_path, 1))
    said = train(spec, tmp_path, 2, checkpoint.newest(tmp_path / "checkpoints"))
    assert len(only(EvaluationEvent, said)) == 1
    assert said[-1] == said[-1].model_copy(update={"state": "finished"})


@pytest.mark.service
def test_damaged_best_checkpoint_is_not_scored_and_fails_no_run(tmp_path: Path) -> None:
    config = {"evaluation_episodes": 1, "evaluation_interval_agent_steps": 200}
    spec = parse_run_spec(
        {"algorithm": "dqn", "environment": "CartPole-v1", "stop": {"agent_steps": 800}, "config": config}
    )
    scores: dict[str, float] = {}

    def damage_the_best(event: AnyEvent) -> None:
        if isinstance(event, EvaluationEvent):
            scores[event.checkpoint] = event.mean_return
            if len(scores) == 4:
                (tmp_path / "checkpoints" / max(scores, key=lambda name: scores[name])).write_bytes(b"x")

    ended = Training(spec, tmp_path, control=Control(), on_event=damage_the_best).run()
    assert (ended.state, len(scores)) == ("finished", 4)
    said = [event.message for event in only(LogEvent, logged(tmp_path, 1))]
    best = max(scores, key=lambda name: scores[name])
    assert f"the best checkpoint {best} is damaged and was not scored" in said


@pytest.mark.service
def test_fork_scores_its_own_best_checkpoint_again_and_not_that_of_its_parent(tmp_path: Path) -> None:
    """A fork's first checkpoint is a copy, whose number of the attempt is 0."""
    request = {"algorithm": "dqn", "environment": "CartPole-v1", "config": {"evaluation_episodes": 1}}
    parent, fork = (
        parse_run_spec(request | {"stop": {"agent_steps": agent_steps}}) for agent_steps in (40, 80)
    )
    train(parent, tmp_path / "parent")
    copy = tmp_path / "fork" / "checkpoints" / checkpoint.file_name(0, 40)
    state = checkpoint.load(tmp_path / "parent" / "checkpoints" / checkpoint.file_name(1, 40))
    _, evaluated = state["best_evaluation"]
    assert evaluated == checkpoint.file_name(1, 40)
    checkpoint.save(copy, state | {"best_evaluation": (1e9, evaluated)})
    _, again = only(EvaluationEvent, train(fork, tmp_path / "fork", resume=copy.name))
    assert again.checkpoint == checkpoint.file_name(1, 80)


@pytest.mark.service
def test_stop_during_the_best_score_leaves_only_that_due(tmp_path: Path) -> None:
    config = {"evaluation_episodes": 1, "evaluation_interval_agent_steps": 200}
    spec = parse_run_spec(
        {"algorithm": "dqn", "environment": "CartPole-v1", "stop": {"agent_steps": 400}, "config": config}
    )
    control = Control()

    def stop_once_scored(event: AnyEvent) -> None:
        if isinstance(event, EvaluationEvent) and event.agent_steps == 400:
            control.stop("enough")

    reported = Training(spec, tmp_path, control=control, on_event=stop_once_scored).run()
    assert (reported.state, reported.reason) == ("stopped", "stopped during the last evaluation")
    saved = checkpoint.newest(tmp_path / "checkpoints")
    assert saved is not None
    said = logged(tmp_path, 1) + train(spec, tmp_path, 2, saved)
    assert [steps for steps, _ in columns(said, "eval/plain/mean_return")] == [200, 400]
    assert [steps for steps, _ in columns(said, "eval/plain/best_kept_return")] == [400]
    assert len(only(EvaluationEvent, said)) == 3
    assert said[-1] == said[-1].model_copy(update={"state": "finished"})


def test_stop_right_after_a_checkpoint_adds_no_point(tmp_path: Path) -> None:
    """A run killed behind its checkpoint would lose such a point: a resume begins after that step."""
    control = Control()

    def stop_once_saved(event: AnyEvent) -> None:
        if isinstance(event, CheckpointSavedEvent):
            control.stop("enough")

    spec = cartpole({"wall_time_s": 60}, checkpoint_interval_s=1.5)
    Training(spec, tmp_path, control=control, on_event=stop_once_saved).run()
    said = logged(tmp_path, 1)
    for saved in only(CheckpointSavedEvent, said):
        behind = only(PointsEvent, said[said.index(saved) :])
        assert all(min(points.agent_steps) > saved.agent_steps for points in behind)


@pytest.mark.service
def test_last_evaluation_precedes_its_checkpoint(tmp_path: Path) -> None:
    """The other way round, a resume from that checkpoint would score it once more."""
    spec = cartpole({"wall_time_s": 1}, checkpoint_interval_s=1, evaluation_episodes=1)
    said = train(spec, tmp_path)
    [score], [saved] = only(EvaluationEvent, said), only(CheckpointSavedEvent, said)
    assert score.agent_steps == saved.agent_steps
    assert said.index(score) < said.index(saved)


@pytest.mark.long
def test_old_checkpoints_are_removed(tmp_path: Path) -> None:
    control = Control()
    saves = count(1)

    def stop_at_the_fifth(event: AnyEvent) -> None:
        if isinstance(event, CheckpointSavedEvent) and next(saves) == 5:
            control.stop("enough")

    # Of a slow disk, five may take as many times the interval.
    spec = cartpole({"wall_time_s": 600}, checkpoint_interval_s=1)
    Training(spec, tmp_path, control=control, on_event=stop_at_the_fifth).run()
    said = logged(tmp_path, 1)
    removed = [file for event in only(CheckpointsRemovedEvent, said) for file in event.files]
    saved = [event.file for event in only(CheckpointSavedEvent, said)]
    left = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert len(saved) >= 5
    assert removed
    assert left == set(saved) - set(removed)
    assert saved[-1] in left


@pytest.mark.service
def test_checkpoint_knows_that_its_own_parameters_were_evaluated(tmp_path: Path) -> None:
    """A run that resumes from it would remove it otherwise, like others once three newer ones are saved."""
    spec = cartpole({"agent_steps": 400}, evaluation_episodes=1)
    train(spec, tmp_path)
    name = checkpoint.newest(tmp_path / "checkpoints")
    assert name is not None
    assert checkpoint.load(tmp_path / "checkpoints" / name)["evaluated"] == [name]


def test_error_is_recorded_with_its_traceback(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    incomplete = {"saved": [], "evaluated": [], "counters": {"wall_time_s": 0.0}}
    checkpoint.save(tmp_path / "checkpoints" / "a1-s000000000001.pt", incomplete)
    said = train(cartpole({"agent_steps": 100}), tmp_path, 2, "a1-s000000000001.pt")
    [ended] = only(EndedEvent, said)
    assert ended.state == "failed"
    assert "KeyError" in (ended.traceback or "")


@pytest.mark.service
def test_checkpoint_score_depends_on_its_seed_only(tmp_path: Path) -> None:
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


def test_diverged_run_fails_and_saves_no_diverged_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.methods.paac import paac
    from workers.engine.nn.losses import ActorCriticLoss, actor_critic_loss

    updates = count(1)

    def exploding(*arguments: torch.Tensor, **weights: Any) -> ActorCriticLoss:
        loss = actor_critic_loss(*arguments, **weights)
        return loss._replace(total=loss.total * float("inf")) if next(updates) > 25 else loss

    monkeypatch.setattr(paac, "actor_critic_loss", exploding)
    said = train(cartpole({"agent_steps": 1_000}), tmp_path)
    [ended] = only(EndedEvent, said)
    assert ended.state == "failed"
    assert (
        ended.reason == "DivergedError: training diverged: optim/grad_norm became nan (NaN or Inf); "
        "try a smaller learning rate"
    )
    assert not only(CheckpointSavedEvent, said)


def test_nan_that_no_metric_shows_is_not_saved_in_a_checkpoint(tmp_path: Path) -> None:
    """DQN without enough replay to learn from: NaN parameters, finite metrics."""
    request: dict[str, Any] = {"algorithm": "dqn", "environment": "CartPole-v1"}
    request["config"] = {"evaluation_episodes": 0, "learning_starts_agent_steps": 1_000}
    train(parse_run_spec(request | {"stop": {"agent_steps": 200}}), tmp_path)
    kept = checkpoint.newest(tmp_path / "checkpoints")
    assert kept is not None
    state = checkpoint.load(tmp_path / "checkpoints" / kept)
    state["learner"]["theta"][3] = float("nan")
    checkpoint.save(tmp_path / "checkpoints" / kept, state)
    said = train(parse_run_spec(request | {"stop": {"agent_steps": 400}}), tmp_path, 2, kept)
    [ended] = only(EndedEvent, said)
    assert ended.state == "failed"
    assert ended.reason.startswith(
        "DivergedError: training diverged: learner.theta became nan (NaN or Inf); "
    )
    assert not only(CheckpointSavedEvent, said)


@pytest.mark.service
def test_reports_exclude_evaluation_time(tmp_path: Path) -> None:
    said = train(
        cartpole({"agent_steps": 2_000}, evaluation_episodes=1, evaluation_interval_agent_steps=400), tmp_path
    )
    assert [r.agent_steps for r in only(ReportEvent, said)][-1] == 2_000


@pytest.mark.service
def test_finished_dqn_run_evaluates_its_best_checkpoint_again(tmp_path: Path) -> None:
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
    *regular, best_kept = only(EvaluationEvent, said)
    assert len(regular) == 5
    best = max(regular, key=lambda event: event.mean_return)
    assert best_kept.checkpoint == best.checkpoint
    assert best_kept.seed not in {event.seed for event in regular}
    policy = load_policy(spec, tmp_path / "checkpoints" / best.checkpoint, best_kept.seed)
    again = evaluate(policy, spec, episodes=4, seed=best_kept.seed, processes=1)
    assert again.returns == best_kept.returns
    [points] = [p for p in only(PointsEvent, said) if p.metric == "eval/plain/best_kept_return"]
    assert points.value == [best_kept.mean_return]
    lines = [event.message for event in only(LogEvent, said) if event.message.startswith("evaluated ")]
    assert [" again (the best checkpoint): " in line for line in lines] == [False] * 5 + [True]
    # Nothing of the run's last step comes after its last checkpoint.
    assert [type(event) for event in said if isinstance(event, EvaluationEvent | CheckpointSavedEvent)][
        -1
    ] is CheckpointSavedEvent
