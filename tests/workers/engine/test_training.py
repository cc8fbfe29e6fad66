"""One attempt after another: saved, resumed, stopped, scored, all of it told in the log."""

import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import psutil
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
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine import checkpoint
from workers.engine.control import Control
from workers.engine.evaluation import evaluate, load_policy
from workers.engine.event_log import read_frames
from workers.engine.training import Training


def cartpole(stop: dict[str, Any], algorithm: str = "paac", **config: Any) -> RunSpec:
    quick = {"evaluation_episodes": 0, "n_e": 4}
    return parse_run_spec(
        {"algorithm": algorithm, "environment": "CartPole-v1", "stop": stop, "config": quick | config}
    )


def train(
    spec: RunSpec, run_dir: Path, attempt: int = 1, resume: str | None = None, control: Control | None = None
) -> list[AnyEvent]:
    Training(spec, run_dir, attempt=attempt, resume=resume, control=control).run()
    return events(run_dir, attempt)


def events(run_dir: Path, attempt: int) -> list[AnyEvent]:
    log = run_dir / "attempts" / str(attempt) / "events.log"
    return [event for frame, _ in read_frames(log) for event in frame]


def only(kind: type[Any], said: list[AnyEvent]) -> list[Any]:
    return [event for event in said if isinstance(event, kind)]


def columns(said: list[AnyEvent], metric: str) -> list[tuple[int, float]]:
    return [
        pair
        for points in only(Points, said)
        if points.metric == metric
        for pair in zip(points.agent_steps, points.value, strict=True)
    ]


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


@pytest.mark.parametrize("n_w", [1, 2])
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
def test_a_resume_is_as_if_it_had_never_stopped(tmp_path: Path, config: dict[str, Any]) -> None:
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
    for episode in only(Episode, second):
        with np.load(tmp_path / "parts" / "replays" / episode.replay, allow_pickle=False) as replay:
            assert len(replay["actions"]) == episode.length_steps, "no record that lacks its beginning"


@pytest.mark.parametrize("other", [{"n_e": 8}, {"n_e": 2}, {"n_w": 2}, {"beta": 0.5, "t_max": 10}])
def test_a_fork_goes_on_with_other_settings(tmp_path: Path, other: dict[str, Any]) -> None:
    train(cartpole({"agent_steps": 1_000}), tmp_path)
    [saved] = only(CheckpointSaved, events(tmp_path, 1))[-1:]
    said = train(cartpole({"agent_steps": 2_000}, **other), tmp_path, attempt=2, resume=saved.file)
    assert only(Started, said)[0].agent_steps == 1_000
    assert (said[-1].state, said[-1].reason[:8]) == ("finished", "reached ")


def test_a_fork_with_another_seed_chooses_by_its_own() -> None:
    from workers.engine.algorithms.paac import PAAC
    from workers.engine.algorithms.paac_master import Master

    spec = cartpole({"agent_steps": 100})
    parent, resumed, forked = (Master(s, PAAC) for s in (spec, spec, spec.model_copy(update={"seed": 7})))
    began = forked.state()["shares"][0]["generator"]
    parent.advance(0.0, watched=False)
    state = parent.state()
    resumed.restore(state)
    forked.restore(state)
    assert torch.equal(resumed.state()["shares"][0]["generator"], state["shares"][0]["generator"])
    assert torch.equal(forked.state()["shares"][0]["generator"], began)
    assert not torch.equal(began, state["shares"][0]["generator"])
    for learner in (parent, resumed, forked):
        learner.close()


def test_workers_share_one_update() -> None:
    """Two processes' shares make the update that one process makes of the same decisions."""
    from workers.engine.algorithms.paac import PAAC
    from workers.engine.algorithms.paac_master import Master

    spec = cartpole({"agent_steps": 100}, n_w=2, learning_rate=0.01, max_grad_norm=1e6, rmsprop_eps=0.1)
    learner = Master(spec, PAAC)
    try:
        theta = learner._flat.theta.clone()
        learner.advance(0.0, watched=False)
        _, _, *shares = learner._memory.vectors()
        assert len(shares) == 2
        assert all(share.abs().sum() > 0 for share in shares)
        d = (shares[0] + shares[1]).double()
        expected = theta.double() - 0.01 * d / torch.sqrt(0.01 * d * d + 0.1)
        torch.testing.assert_close(learner._flat.theta.double(), expected, rtol=0, atol=1e-6)
    finally:
        learner.close()


def test_512_environments_make_one_update() -> None:
    from workers.engine.algorithms import ENGINES

    learner = ENGINES["paac"].learner(cartpole({"agent_steps": 10_000}, n_e=512, t_max=2))
    try:
        made = learner.advance(0.0, watched=False)
        assert (made.agent_steps, made.updates) == (1_024, 1)
        begun = [k for share in learner.state()["shares"] for k in share["episodes_begun"]]
        assert len(begun) == 512
    finally:
        learner.close()


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


def start_engine(run_dir: Path, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "workers.engine", "train", str(run_dir), *more])


def wait_for(kind: type[AnyEvent], engine: subprocess.Popen[bytes], run_dir: Path) -> None:
    while not only(kind, events(run_dir, 1)):
        with suppress(subprocess.TimeoutExpired):
            engine.wait(0.1)
        assert engine.returncode is None


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_engine_process_ends_by_signal_with_all_it_started(tmp_path: Path, how: signal.Signals) -> None:
    spec = cartpole({"wall_time_s": 200}, n_w=2, checkpoint_interval_s=1)
    (tmp_path / "spec.json").write_text(spec.model_dump_json())
    engine = start_engine(tmp_path)
    wait_for(CheckpointSaved, engine, tmp_path)
    parts = psutil.Process(engine.pid).children(recursive=True)
    assert len(parts) == 2
    engine.send_signal(how)
    assert engine.wait(timeout=30) == (0 if how == signal.SIGTERM else -signal.SIGKILL)
    said = events(tmp_path, 1)
    if how == signal.SIGTERM:
        assert said[-1] == said[-1].model_copy(update={"state": "stopped", "reason": "stopped by SIGTERM"})
    else:
        assert not only(Ended, said)
    assert psutil.wait_procs(parts, timeout=10)[1] == []


def test_bad_specification_exits_with_2(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps({"algorithm": "paac", "environment": "os:system"}))
    assert start_engine(tmp_path).wait(timeout=30) == 2
    assert not (tmp_path / "attempts").exists()


def test_a_disk_that_takes_no_more_fails_the_run_and_leaves_no_half_file(tmp_path: Path) -> None:
    spec = cartpole({"wall_time_s": 200}, n_w=1, checkpoint_interval_s=3)
    (tmp_path / "spec.json").write_text(spec.model_dump_json())
    engine = start_engine(tmp_path)
    wait_for(Report, engine, tmp_path)
    # No file grows further than this: enough for the log, too little for a checkpoint.
    resource.prlimit(engine.pid, resource.RLIMIT_FSIZE, (100_000, 100_000))
    assert engine.wait(timeout=60) == 1
    ended = only(Ended, events(tmp_path, 1))[-1]
    assert (ended.state, ended.reason) == ("failed", "OSError: [Errno 27] File too large")
    assert os.listdir(tmp_path / "checkpoints") == []


def test_a_killed_part_kills_the_engine_so_that_the_run_goes_on(tmp_path: Path) -> None:
    """A signal is the machine's doing: no last word, and a supervisor queues the run again."""
    spec = cartpole({"wall_time_s": 200}, n_w=2, checkpoint_interval_s=1)
    (tmp_path / "spec.json").write_text(spec.model_dump_json())
    engine = start_engine(tmp_path)
    wait_for(CheckpointSaved, engine, tmp_path)
    parts = psutil.Process(engine.pid).children(recursive=True)
    assert len(parts) == 2
    parts[1].kill()
    assert engine.wait(timeout=30) == -signal.SIGKILL
    assert not only(Ended, events(tmp_path, 1))
    assert psutil.wait_procs(parts, timeout=10)[1] == []


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


def test_gradient_of_a_rollout_is_that_of_its_observations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kept activations give the gradient that a fresh pass over the same observations gives."""
    from workers.engine.algorithms import paac
    from workers.engine.algorithms.paac_master import Master
    from workers.engine.algorithms.paac_share import Share
    from workers.engine.losses import ActorCriticLoss, actor_critic_loss

    batches: list[dict[str, Any]] = []

    def spy(
        logits: torch.Tensor, v: torch.Tensor, a: torch.Tensor, R: torch.Tensor, **k: Any
    ) -> ActorCriticLoss:
        batches.append({"a": a, "R": R, **k})
        return actor_critic_loss(logits, v, a, R, **k)

    monkeypatch.setattr(paac, "actor_critic_loss", spy)
    learner = Master(cartpole({"agent_steps": 100}, n_e=4, t_max=5), paac.PAAC)
    share = learner._shares[0]
    assert isinstance(share, Share)
    seen: list[torch.Tensor] = []
    original = share._observation

    def observe() -> torch.Tensor:
        observation = original()
        seen.append(observation.numpy().copy())
        return observation

    monkeypatch.setattr(share, "_observation", observe)
    before = learner._flat.theta.clone()
    share.finish()
    kept = learner._flat.dtheta.clone()
    assert torch.equal(before, learner._flat.theta)
    logits, v = learner.network(torch.from_numpy(np.concatenate(seen[:5])))
    learner._flat.dtheta.zero_()
    [batch] = batches
    loss = actor_critic_loss(
        logits, v, batch["a"], batch["R"], beta=batch["beta"], value_coefficient=batch["value_coefficient"]
    )
    loss.total.backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(kept, learner._flat.dtheta, rtol=1e-5, atol=1e-7)
    learner.close()


def test_a_resume_with_other_parts_plays_new_episodes(tmp_path: Path) -> None:
    first = train(cartpole({"agent_steps": 2_000}), tmp_path)
    kept = checkpoint.newest(tmp_path / "checkpoints")
    second = train(cartpole({"agent_steps": 4_000}, n_e=8), tmp_path, 2, kept)
    assert only(Ended, second)[0].state == "finished", second[-1]
    assert columns(second, "rollout/episode_return") != columns(first, "rollout/episode_return")


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
