"""The learner of the asynchronous methods, with its actors as threads of the test's process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from backend.specs.events import AnyEvent, EvaluationEvent, ReportEvent
from backend.specs.run import parse_run_spec
from tests.support.engine_process import logged
from tests.support.scripted_environment import Outcome, Script, Scripted
from tests.support.thread_children import ThreadChild
from tests.support.waiting import Patience, until
from workers.engine.methods.asynchronous import learner
from workers.engine.methods.asynchronous.learner import HogwildLearner
from workers.engine.methods.asynchronous.memory import AGENT_STEPS, EPISODES_BEGUN, FRAMES
from workers.engine.methods.base import StepResult
from workers.engine.methods.registry import METHODS
from workers.engine.nn.seeds import episode_seed
from workers.engine.training.loop import Training


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
def test_nan_since_the_last_report_reaches_no_checkpoint_and_no_score(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluation_episodes: int
) -> None:
    """Actors run on between the report whose metrics are checked and the pause before a checkpoint."""
    monkeypatch.setattr(learner, "Child", ThreadChild)
    config = {"n_actors": 1, "t_max": 2, "evaluation_episodes": evaluation_episodes}
    request = {"algorithm": "n_step_q", "stop": {"wall_time_s": 0.3}, "config": config}
    spec = parse_run_spec(script([Outcome(1.0)]) | request)

    def poison(event: AnyEvent) -> None:
        if isinstance(event, ReportEvent):
            monkeypatch.setattr(Scripted, "outcomes", repeat(Outcome(float("nan"))))
            n = len(Scripted.decisions)
            until(lambda: len(Scripted.decisions) > n + 6)

    ended = Training(spec, tmp_path / "run", on_event=poison).run()
    assert ended.state == "failed"
    assert ended.reason.startswith("DivergedError: training diverged: theta became nan")
    assert not list((tmp_path / "run").glob("checkpoints/*"))
    assert not [event for event in logged(tmp_path / "run") if isinstance(event, EvaluationEvent)]


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
    with learning(script, monkeypatch, ends) as resumed:
        resumed.restore(state)
        resumed.change(resumed.config.model_copy(update={"n_actors": 2}))
        resumed.state()  # when both have started
        assert Scripted.seeds[-1] == episode_seed(0, 1, begun)
    with learning(script, monkeypatch, ends, n_actors=2) as fork:
        fork.restore(state)
        assert Scripted.seeds[-1] == episode_seed(0, 1, begun)
