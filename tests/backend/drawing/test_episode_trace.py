from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.drawing.episode_trace import TracePanel, discount, episode_trace_figure
from backend.drawing.export_script import matplotlib_script
from tests.backend.drawing.lines import valid

rewards = st.lists(st.floats(-5, 5), min_size=1, max_size=30)


@given(rewards, st.sampled_from([0.0, 0.5, 0.99, 1.0]), st.sampled_from([None, 1.0]))
def test_discounted_matches_definition(values: list[float], gamma: float, clip: float | None) -> None:
    clipped = [v if clip is None else max(-clip, min(clip, v)) for v in values]
    wanted = [sum(gamma**k * clipped[t + k] for k in range(len(clipped) - t)) for t in range(len(clipped))]
    np.testing.assert_allclose(discount(np.array(values), gamma, clip), wanted, rtol=1e-9, atol=1e-9)


def test_return_of_an_agent_of_single_lives_ends_with_a_life() -> None:
    lives = np.array([2, 1, 1, 1])
    assert discount(np.ones(4), 0.5, None, lives).tolist() == [1.5, 1.0, 1.5, 1.0]


def test_return_of_an_episode_that_a_limit_ended_goes_on_with_its_last_value() -> None:
    np.testing.assert_allclose(discount(np.ones(500), 0.99, None, bootstrap=100.0), 100.0)
    lives = np.array([2, 2, 1, 0])
    assert discount(np.ones(4), 0.5, None, lives, 2.0).tolist() == [1.75, 1.5, 1.0, 2.0]


def draw(length: int, n_actions: int = 3, **more: Any) -> go.Figure:
    rng = np.random.default_rng(0)
    names = [f"action {at}" for at in range(n_actions)]
    policies = rng.dirichlet(np.ones(max(1, n_actions)), length)[:, :n_actions]
    rewards, values = rng.normal(size=length), rng.normal(size=length)
    return valid(episode_trace_figure(rewards, values, policies, names, **more))


def by_name(figure: go.Figure) -> dict[str, Any]:
    return {trace.name: trace for trace in figure.data}


def test_action_values_are_not_stacked() -> None:
    figure = draw(50, action_values=True)
    assert by_name(figure)["action 0"].stackgroup is None
    assert "max Q" in by_name(figure)
    assert figure.layout.yaxis3.title.text == "Q(a)"


@pytest.mark.parametrize("action_values", [True, False])
def test_all_actions_of_atari_look_different(action_values: bool) -> None:
    figure = draw(50, 18, action_values=action_values)
    looks = [(trace.line.color, trace.marker.symbol) for trace in figure.data]
    assert len(set(looks)) == 20


def test_figure_has_three_panels_over_one_x_axis_which_counts_from_1() -> None:
    figure = draw(50)
    assert list(by_name(figure)) == ["Reward", "V", "action 0", "action 1", "action 2"]
    assert [trace.yaxis for trace in figure.data] == ["y", "y2", "y3", "y3", "y3"]
    assert {trace.xaxis or "x" for trace in figure.data} == {"x"}
    assert figure.layout.xaxis.anchor == "y3"
    assert figure.layout.xaxis.title.text == "Agent steps in the episode"
    assert figure.layout.yaxis3.range == (0, 1)
    assert by_name(figure)["V"].x == tuple(range(1, 51))


@pytest.mark.parametrize("length", [1, 999, 1000, 1001, 5000])
def test_long_episode_is_bucketed_without_losing_reward(length: int) -> None:
    rng = np.random.default_rng(0)
    rewards = rng.normal(size=length)
    ones, none = np.ones(length), np.empty((length, 0))
    figure = valid(episode_trace_figure(rewards, ones, none, [], max_points=1000))
    reward, value = figure.data
    assert len(reward.y) <= 1000
    assert sum(reward.y) == pytest.approx(rewards.sum())
    assert value.y == pytest.approx(np.ones(len(value.y)))
    assert reward.x[-1] == length
    assert ("summed" in figure.layout.title.subtitle.text) == (length > 1000)


def test_stacked_policy_sums_to_one() -> None:
    figure = draw(3000)
    stacked = np.array([trace.y for trace in figure.data if trace.stackgroup])
    assert stacked.sum(axis=0) == pytest.approx(np.ones(stacked.shape[1]))


def test_lost_lives_are_marked_by_dotted_lines() -> None:
    figure = draw(6, lives=np.array([3, 3, 2, 2, 2, 1]))
    assert sorted({shape.x0 for shape in figure.layout.shapes}) == [3, 6]
    assert "dotted: life lost" in figure.layout.title.subtitle.text
    assert not draw(6, lives=np.full(6, 3)).layout.shapes


def test_discounted_return_is_drawn_behind_value() -> None:
    names = list(by_name(draw(5, returns=np.arange(5.0))))
    assert names.index("Discounted return") < names.index("V")


def test_episode_without_policy_has_two_panels() -> None:
    figure = draw(5, n_actions=0)
    assert list(by_name(figure)) == ["Reward", "V"]
    assert figure.layout.yaxis2.domain[0] == pytest.approx(0.0)
    assert "yaxis3" not in figure.layout


def test_value_error_is_value_minus_discounted_return() -> None:
    returns = np.arange(5.0)
    figure = draw(
        5, panels=["reward", "value", "value_error"], returns=returns, lives=np.array([2, 2, 1, 1, 1])
    )
    lines = by_name(figure)
    assert list(lines) == ["Reward", "Discounted return", "V", "Value error"]
    assert lines["Value error"].y == pytest.approx(np.array(lines["V"].y) - returns)
    assert [lines[name].yaxis for name in lines] == ["y", "y2", "y2", "y3"]
    assert len({line.line.color for line in lines.values()}) == 4
    assert {shape.yref for shape in figure.layout.shapes} == {"y domain", "y2 domain", "y3 domain"}
    heights = [axis.domain for axis in (figure.layout.yaxis, figure.layout.yaxis2, figure.layout.yaxis3)]
    assert all(below[1] < above[0] for above, below in pairwise(heights))


def test_panels_without_anything_to_draw_are_left_out() -> None:
    nobody, none = np.empty(0), np.empty((0, 0))
    ones = np.ones(4)
    game = episode_trace_figure(ones, nobody, none, [], panels=["reward", "value", "value_error", "policy"])
    assert list(by_name(valid(game))) == ["Reward"]
    assert valid(game).layout.yaxis.domain == (0, 1)
    without_discount = valid(episode_trace_figure(ones, ones, none, [], panels=["value_error"]))
    assert list(by_name(without_discount)) == ["Reward"], "never an empty figure"


def test_script_draws_rewards_as_steps_around_their_agent_step() -> None:
    script: dict[str, Any] = {"__name__": "script"}
    exec(matplotlib_script(episode_trace_figure(np.ones(4), np.ones(4), np.empty((4, 0)), [])), script)
    reward, value = script["FIGURE"]["series"]
    assert (reward["steps"], value["steps"]) == ("steps-mid", "default")
    assert [panel["has_x"] for panel in script["FIGURE"]["panels"]] == [False, True]


def test_continuous_actions_are_drawn_as_lines() -> None:
    numbers = np.array([[0.5, -2.0], [1.5, 0.25], [0.0, 3.0]])
    zeros, names = np.zeros(3), ("HIP", "KNEE")
    figure = valid(episode_trace_figure(zeros, zeros, np.zeros((3, 2)), names, numbers=numbers))
    drawn = {trace.name: list(trace.y) for trace in figure.data if trace.name in ("HIP", "KNEE")}
    assert drawn == {"HIP": [0.5, 1.5, 0.0], "KNEE": [-2.0, 0.25, 3.0]}
    assert figure.layout.yaxis3.title.text == "Action"
    assert figure.layout.yaxis3.range is None


@pytest.mark.parametrize("action_values", [True, False])
def test_value_error_looks_different_from_every_action(action_values: bool) -> None:
    panels: list[TracePanel] = ["reward", "value", "value_error", "policy"]
    figure = draw(50, 18, panels=panels, returns=np.ones(50), action_values=action_values)
    looks = [(trace.line.color, trace.marker.symbol) for trace in figure.data]
    assert len(set(looks)) == len(looks) == 22
