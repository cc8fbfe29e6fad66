import numpy as np

from backend.figures.seed_curve import Group, seed_curve
from backend.figures.theme import DASHES, colours

BAND = "95 % CI of the mean (Student's t)"


def group(key: str = "a", **more) -> Group:
    columns = {
        "x": np.array([64.0, 128.0, 192.0]),
        "mean": np.array([1.0, 2.0, 3.0]),
        "low": np.array([0.5, 1.5, np.nan]),
        "high": np.array([1.5, 2.5, np.nan]),
        "n": np.array([3, 3, 1]),
    }
    about = {"name": "PAAC on Pong", "n_seeds": 3, "metric": "loss/value", "source": ""}
    return Group(**({"id": key, "columns": columns, "n_total": 900, "n_shown": 3} | about | more))


def draw(*groups: Group, **more):
    return seed_curve(groups, **({"metric": "loss/value", "x": "agent_steps", "interval": BAND} | more))


def test_the_mean_is_a_line_in_its_band() -> None:
    low, high, mean = draw(group()).data
    assert (low.y, high.y, mean.y) == ((0.5, 1.5, None), (1.5, 2.5, None), (1.0, 2.0, 3.0))
    assert low.x == high.x == mean.x == (64.0, 128.0, 192.0)
    assert (low.fill, high.fill) == (None, "tonexty")
    assert low.line.width == high.line.width == 0
    assert [trace.showlegend for trace in (low, high, mean)] == [False, False, True]
    assert [trace.hoverinfo for trace in (low, high, mean)] == ["skip", "skip", None]
    assert len({trace.legendgroup for trace in (low, high, mean)}) == 1


def test_it_says_of_how_many_seeds() -> None:
    *_, mean = draw(group()).data
    assert mean.name == "PAAC on Pong, 3 seeds"
    assert mean.customdata == (3, 3, 1)
    assert "%{customdata}" in mean.hovertemplate
    assert draw(group(n_seeds=1)).data[-1].name == "PAAC on Pong, 1 seed"


def test_the_band_is_named_where_there_is_one() -> None:
    assert f"band: {BAND}" in draw(group()).layout.title.subtitle.text
    assert "band" not in draw(group(n_seeds=1)).layout.title.subtitle.text
    told = draw(group(), group("b"), smooth=0.9).layout.title.subtitle.text
    assert "each smoothed 0.9" in told
    assert "6 grid points of 1,800 points" in told


def test_groups_are_told_apart_and_keep_their_colour() -> None:
    def look(figure, key: str) -> tuple[str, str]:
        (mean,) = [t for t in figure.data if t.meta["group"] == key and t.showlegend]
        return mean.line.color, mean.line.dash

    assert look(draw(group("a")), "a") == look(draw(group("a"), group("b")), "a")
    assert look(draw(group("b"), order=["a", "b"]), "b") == look(draw(group("a"), group("b")), "b")
    keys = [f"{at:016x}" for at in range(len(colours("light")) * len(DASHES) // 4)]
    figure = draw(*map(group, keys))
    assert len({look(figure, key) for key in keys}) == len(keys)


def test_without_numbers_a_trace_says_what_belongs_in_it() -> None:
    traces = draw(group(columns=None, n_total=0, n_shown=0)).data
    assert [(trace.x, trace.y) for trace in traces] == [((), ())] * 3
    assert [trace.meta["y"] for trace in traces] == ["low", "high", "mean"]
    assert {(t.meta["group"], t.meta["metric"], t.meta["source"]) for t in traces} == {
        ("a", "loss/value", "")
    }
