"""The learner of the asynchronous methods, with its actors as threads of the test's process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from backend.specs.events import AnyEvent, CheckpointSavedEvent, EvaluationEvent, PointsEvent
from backend.specs.run import parse_run_spec
from tests.support.engine_process import logged
from tests.support.scripted_environment import Outcome, Script, Scripted
from tests.support.thread_children import ThreadChild
from tests.support.waiting import Patience, until
from workers.engine.methods.asynchronous import learner
from workers.engine.methods.asynchronous.learner import HogwildLearner
from workers.engine.methods.asynchronous.memory import AGENT_STEPS, EPISODES_BEGUN, FRAMES, UPDATES
from workers.engine.methods.base import StepResult
from workers.engine.methods.registry import METHODS
from workers.engine.nn.seeds import episode_seed
from workers.engine.training import checkpoint
from workers.engine.training.control import Control
from workers.engine.training.loop import Training
from workers.engine.training.scoring import Scoring


@contextmanager
def learning(
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
    outcomes: list[Outcome],
    *,
    agent_steps: int = 10**10,
    **config: Any,
) -> Iterator[HogwildLearner]:
    monkeypatch.setattr(learner, "Child", ThreadChild)
    request = {"algorithm": "n_step_q", "stop": {"agent_steps": agent_steps}}
    made = METHODS["n_step_q"].learner(
        parse_run_spec(script(outcomes) | request | {"config": {"n_actors": 1} | config})
    )
    assert isinstance(made, HogwildLearner)
    try:
        yield made
    finally:
        made.close()


def advance_until(learner: HogwildLearner, enough: Callable[[StepResult], bool]) -> None:
    patience = Patience()
    while patience.lasts() and not enough(learner.advance(0.0, watched=False)):
        pass


@pytest.mark.parametrize("evaluation_episodes", [0, 1])
def test_nan_of_the_last_update_reaches_no_checkpoint_and_no_score(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluation_episodes: int
) -> None:
    """An update whose gradient is finite may still overflow theta: no metric shows it before the next one."""
    monkeypatch.setattr(learner, "Child", ThreadChild)
    config = {"n_actors": 1, "t_max": 2, "evaluation_episodes": evaluation_episodes}
    request = {"algorithm": "n_step_q", "stop": {"wall_time_s": 0.3}, "config": config}
    spec = parse_run_spec(script([Outcome(1.0)]) | request)

    settle = HogwildLearner.settle

    def poison(self: HogwildLearner, progress: float) -> StepResult:
        result = settle(self, progress)
        self.vectors.theta[0] = float("nan")
        return result

    monkeypatch.setattr(HogwildLearner, "settle", poison)
    ended = Training(spec, tmp_path / "run").run()
    assert ended.state == "failed"
    assert ended.reason.startswith("DivergedError: training diverged: theta became nan")
    assert not list((tmp_path / "run").glob("checkpoints/*"))
    assert not [event for event in logged(tmp_path / "run") if isinstance(event, EvaluationEvent)]


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"checkpoint_interval_s": 1.0},
        {"evaluation_episodes": 1, "evaluation_interval_agent_steps": 1},
    ],
    ids=["stop", "interval", "evaluation"],
)
def test_checkpoint_counts_what_actors_do_until_they_pause(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any]
) -> None:
    """They run on after the last `advance`; no point of the checkpoint's step comes after the checkpoint."""
    monkeypatch.setattr(learner, "Child", ThreadChild)
    run_dir, control, advance = tmp_path / "run", Control(), HogwildLearner.advance
    ends_of_episodes: list[int] = []
    """Of each checkpoint."""

    def run_on(self: HogwildLearner, progress: float, *, watched: bool) -> StepResult:
        result = advance(self, progress, watched=watched)
        n = len(Scripted.decisions)
        until(lambda: len(Scripted.decisions) > n + 6)
        if not config:
            control.stop("enough")
        return result

    def stop_once_saved(event: AnyEvent) -> None:
        if isinstance(event, CheckpointSavedEvent):
            assert event.agent_steps == event.frames == len(Scripted.decisions)
            ends_of_episodes.append(sum(decision.end != "" for decision in Scripted.decisions))
            control.stop("enough")

    monkeypatch.setattr(HogwildLearner, "advance", run_on)
    monkeypatch.setattr(Scoring, "score", lambda self, spec, learner: learner.policy(0))
    request = {"algorithm": "a3c", "stop": {"wall_time_s": 1_000}}
    fixed = {"n_actors": 2, "t_max": 2, "evaluation_episodes": 0}
    outcomes = [Outcome(1.0), Outcome(1.0), Outcome(1.0, "terminated")]
    spec = parse_run_spec(script(outcomes) | request | {"config": fixed | config})
    ended = Training(spec, run_dir, control=control, on_event=stop_once_saved).run()
    assert (ended.state, ended.reason) == ("stopped", "enough"), ended.traceback
    events = logged(run_dir)
    checkpoints = [event for event in events if isinstance(event, CheckpointSavedEvent)]
    assert [saved.episodes for saved in checkpoints] == ends_of_episodes
    for saved in checkpoints:
        state = checkpoint.load(run_dir / "checkpoints" / saved.file)["learner"]
        assert sum(state["episodes_begun"]) == saved.episodes + fixed["n_actors"]
        assert state["counts"][UPDATES] == saved.updates
        at = events.index(saved)
        before, after = (
            [event for event in part if isinstance(event, PointsEvent)] for part in (events[:at], events[at:])
        )
        returns = [event for event in before if event.metric == "rollout/episode_return" and not event.source]
        assert sum(len(event.value) for event in returns) == saved.episodes
        assert all(min(event.agent_steps) > saved.agent_steps for event in after)


def test_resumed_run_copies_its_target_at_the_next_period_only(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    with learning(script, monkeypatch, [Outcome(1.0)], target_update_frames=10**9) as resumed:
        state = resumed.state()
        state["counts"][FRAMES] = 15 * 10**8
        state["theta_minus"].zero_()
        resumed.restore(state)
        advance_until(resumed, lambda result: result.updates > 0)
        assert not resumed.state()["theta_minus"].any()


def test_actor_takes_no_decision_beyond_the_bound(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    with learning(script, monkeypatch, [Outcome(1.0)], agent_steps=6, t_max=3) as bounded:
        taken = 0

        def count(result: StepResult) -> bool:
            nonlocal taken
            taken += result.agent_steps
            return taken >= 6

        advance_until(bounded, count)
        assert bounded.state()["counts"][AGENT_STEPS] == 6
        assert len(Scripted.decisions) == 6


def test_episodes_of_the_first_actor_are_recorded(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: dict[str, set[bool]] = {}
    with learning(script, monkeypatch, [Outcome(1.0), Outcome(1.0, "terminated")], n_actors=2) as both:

        def seen(result: StepResult) -> bool:
            for episode in result.episodes:
                recorded.setdefault(episode.source, set()).add(episode.recording is not None)
            return len(recorded) == 2

        advance_until(both, seen)
    assert recorded == {"actor 0": {True}, "actor 1": {False}}


def test_episode_that_cannot_be_repeated_is_replaced_by_the_next(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a change of the environment's settings: an action kept from before ends the episode now."""
    with learning(script, monkeypatch, [Outcome(1.0)]) as resumed:
        advance_until(resumed, lambda result: result.agent_steps > 0)
        state = resumed.state()
        [before] = [actor["play"] for actor in state["actors"]]
        assert before["actions"]
        monkeypatch.setattr(Scripted, "outcomes", repeat(Outcome(1.0, "terminated")))
        resumed.restore(state)
        [after] = [actor["play"] for actor in resumed.state()["actors"]]
        assert (after["begun"], after["actions"]) == (before["begun"] + 1, [])
        assert after["seed"] == Scripted.seeds[-1] != before["seed"] == Scripted.seeds[-2]


def test_actor_that_starts_after_a_resume_continues_the_episodes_of_its_number(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It did not run any more when the checkpoint was saved."""
    ends = [Outcome(1.0, "terminated")]
    with learning(script, monkeypatch, ends, n_actors=2) as parent:
        advance_until(parent, lambda result: any(end.source == "actor 1" for end in result.episodes))
        parent.change(parent.config.model_copy(update={"n_actors": 1}))
        state, begun = parent.state(), int(parent.counts.of(1)[EPISODES_BEGUN])
    episode = {episode_seed(0, 1, k): k for k in range(begun + 1)}
    with learning(script, monkeypatch, ends) as resumed:
        resumed.restore(state)
        n = len(Scripted.seeds)
        resumed.change(resumed.config.model_copy(update={"n_actors": 2}))
        resumed.state()  # when both have started
        assert next(episode[seed] for seed in Scripted.seeds[n:] if seed in episode) == begun
    with learning(script, monkeypatch, ends, n_actors=2) as fork:
        n = len(Scripted.seeds)
        fork.restore(state)
        assert next(episode[seed] for seed in Scripted.seeds[n:] if seed in episode) == begun
