from typing import Any

import pytest

from backend.specs.annealing import Annealing, annealing_notice, with_annealing
from backend.specs.problems import InvalidSpec
from backend.specs.run import RunSpec, parse_run_spec
from tests.support.rows import CARTPOLE


def spec(agent_steps: int, schedule: str = "linear", **more: Any) -> RunSpec:
    config = {"learning_rate_schedule": schedule}
    return parse_run_spec(CARTPOLE | {"config": config, "stop": {"agent_steps": agent_steps}} | more)


@pytest.mark.parametrize(
    ("kept_before", "annealing", "over"),
    [
        (None, None, 3_000),
        (None, "extend", 3_000),
        (None, "keep", 1_000),
        (500, None, 500),
        (500, "extend", 3_000),
        (500, "keep", 500),
    ],
)
def test_schedule_of_a_resumed_run(kept_before: int | None, annealing: Annealing | None, over: int) -> None:
    before = spec(1_000, annealing_agent_steps=kept_before)
    resumed = with_annealing(before, spec(3_000), annealing)
    assert resumed.annealed_over_agent_steps == over
    assert resumed.stop.agent_steps == 3_000


def test_choice_is_refused_with_a_constant_learning_rate() -> None:
    with pytest.raises(InvalidSpec, match="annealing: the learning rate of this run is constant"):
        with_annealing(spec(1_000, "constant"), spec(3_000, "constant"), "keep")


def test_notice_gives_the_rates_before_and_after() -> None:
    assert annealing_notice(spec(1_000), spec(3_000), 750) == (
        "the learning rate now falls to 0 over 3,000 agent steps instead of 1,000: at 750 it changes from "
        "25% to 75% of its initial value"
    )
    assert "from 0% to 50%" in (annealing_notice(spec(1_000), spec(4_000), 2_000) or "")


def test_no_notice_where_the_rate_does_not_change() -> None:
    assert annealing_notice(spec(1_000), with_annealing(spec(1_000), spec(3_000), "keep"), 750) is None
    assert annealing_notice(spec(1_000, "constant"), spec(3_000, "constant"), 750) is None


def test_linear_schedule_needs_a_number_of_agent_steps() -> None:
    wall = {"wall_time_s": 60}
    with pytest.raises(InvalidSpec, match=r"stop\.agent_steps: a linear learning rate schedule requires"):
        spec(1, stop=wall)
    assert spec(1, stop=wall, annealing_agent_steps=500).annealed_over_agent_steps == 500
