import numpy as np

from backend.drawing.branch import FanLine, PersonLine, branch_figure
from backend.drawing.palette import N_COLOURS
from tests.backend.drawing.lines import valid


def test_games_of_more_people_than_there_are_colours_look_different() -> None:
    returns = np.array([0.0, 1.0, 2.0])
    line = FanLine(returns, 2.0, is_bootstrapped=False)
    people = [PersonLine(f"person {number}", returns, finished=True) for number in range(2 * N_COLOURS)]
    figure = valid(
        branch_figure([line], line, people, value=None, value_name="V", y="Return", title="", subtitle="")
    )
    looks = [
        (trace.line.color, trace.marker.symbol) for trace in figure.data if trace.name.startswith("person")
    ]
    assert len(set(looks)) == len(people)
    [own] = [trace.line.color for trace in figure.data if trace.name == "the episode itself"]
    assert (own, None) not in looks
