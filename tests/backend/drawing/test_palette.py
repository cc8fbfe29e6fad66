from itertools import combinations

import numpy as np
import pytest

from backend.drawing.palette import (
    COLOUR_NAMES,
    N_COLOURS,
    N_STYLES,
    SYMBOLS,
    Theme,
    all_colours,
    colours,
    distinct_styles,
    look,
    source_styles,
)
from backend.drawing.theme import ground
from backend.statistics.columns import Array
from tests.backend.drawing.colour_difference import (
    DEUTERANOPIA,
    PROTANOPIA,
    Lab,
    ciede2000,
    contrast,
    lab,
    linear,
    seen,
)

THEMES: tuple[Theme, ...] = ("light", "dark")
PANELS: dict[Theme, tuple[str, ...]] = {"light": ("#ffffff",), "dark": ("#15181e", ground("dark"))}
VISIONS = {"usual": None, "deuteranopia": DEUTERANOPIA, "protanopia": PROTANOPIA}
MIN_DIFFERENCE = 15.0
MIN_CONTRAST = 3.0


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 3.1571, -77.2803), (50.0, 0.0, -82.7485), 2.8615),
        ((50.0, -1.3802, -84.2814), (50.0, 0.0, -82.7485), 1.0),
        ((50.0, 0.0, 0.0), (50.0, -1.0, 2.0), 2.3669),
        ((50.0, 2.49, -0.001), (50.0, -2.49, 0.0009), 7.1792),
        ((50.0, 2.49, -0.001), (50.0, -2.49, 0.0011), 7.2195),
        ((50.0, -0.001, 2.49), (50.0, 0.0011, -2.49), 4.7461),
        ((50.0, 2.5, 0.0), (50.0, 0.0, -2.5), 4.3065),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, 2.5, 0.0), (61.0, -5.0, 29.0), 22.8977),
        ((50.0, 2.5, 0.0), (56.0, -27.0, -3.0), 31.9030),
        ((50.0, 2.5, 0.0), (58.0, 24.0, 15.0), 19.4535),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
        ((90.8027, -2.0831, 1.4410), (91.1528, -1.6435, 0.0447), 1.4441),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_oracle_has_the_published_differences(first: Lab, second: Lab, difference: float) -> None:
    assert ciede2000(first, second) == pytest.approx(difference, abs=5e-5)
    assert ciede2000(second, first) == pytest.approx(difference, abs=5e-5)


def test_oracle_converts_known_colours() -> None:
    assert lab(linear("#ffffff")) == pytest.approx((100.0, 0.0, 0.0), abs=1e-3)
    assert lab(linear("#ff0000")) == pytest.approx((53.24, 80.09, 67.20), abs=0.01)
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def differences(colours: tuple[str, ...]) -> Array:
    """The difference of each two colours to whom they differ least."""
    seen_by_all = [
        [lab(seen(linear(colour), deficiency)) for colour in colours] for deficiency in VISIONS.values()
    ]
    n = len(colours)
    least = np.zeros((n, n))
    for a, b in combinations(range(n), 2):
        least[a, b] = least[b, a] = min(ciede2000(labs[a], labs[b]) for labs in seen_by_all)
    return least


def differ(theme: Theme) -> Array:
    """Whether two styles differ, for each two."""
    by_colour = differences(all_colours(theme)) >= MIN_DIFFERENCE
    colour = np.array([style % len(by_colour) for style in range(N_STYLES)])
    symbol = np.array([look(style, theme).symbol for style in range(N_STYLES)])
    is_different: Array = by_colour[np.ix_(colour, colour)] | (symbol[:, None] != symbol[None, :])
    return is_different


@pytest.mark.parametrize("theme", THEMES)
def test_any_two_styles_differ_by_colour_or_symbol_for_everybody(theme: Theme) -> None:
    alike = ~differ(theme) & ~np.eye(N_STYLES, dtype=bool)
    assert [(look(a, theme), look(b, theme)) for a, b in np.argwhere(np.triu(alike))] == []


@pytest.mark.parametrize("theme", THEMES)
def test_colours_have_contrast_to_their_ground(theme: Theme) -> None:
    contrasts = {
        colour: min(contrast(colour, panel) for panel in PANELS[theme]) for colour in all_colours(theme)
    }
    assert {colour: ratio for colour, ratio in contrasts.items() if ratio < MIN_CONTRAST} == {}


def test_palette_has_ten_named_colours_and_starts_with_the_accent() -> None:
    assert (colours("light")[0], colours("dark")[0]) == ("#3f4fc4", "#8d9bff")
    assert len(colours("light")) == len(colours("dark")) == len(set(COLOUR_NAMES)) == N_COLOURS
    assert len(all_colours("light")) == len(all_colours("dark")) == 2 * N_COLOURS
    assert len(set(SYMBOLS)) * N_COLOURS == N_STYLES
    assert [look(style, "light").symbol for style in (0, 9, 10, 20)] == ["", "", *SYMBOLS[1:3]]


def test_no_two_series_of_any_view_look_alike() -> None:
    """10,000 views: runs and groups enter and leave, and their styles are changed, equal ones included. Each
    view has a figure in which some of them have several sources."""
    rng = np.random.default_rng(0)
    differing = differ("light") & differ("dark")
    for _ in range(10_000):
        keys = list(map(str, rng.permutation(2 * N_STYLES)[: rng.integers(1, N_STYLES + 1)].tolist()))
        chosen = rng.integers(-N_STYLES, N_STYLES + 5, len(keys)).tolist()
        wanted = {key: style for key, style in zip(keys, chosen, strict=True) if style >= 0}
        styles = distinct_styles(keys, wanted)
        owners = [keys[at] for at in rng.integers(0, len(keys), rng.integers(1, N_STYLES + 1)).tolist()]
        for given in (list(styles.values()), source_styles(owners, styles)):
            # Each differs from all but itself.
            alike = len(given) ** 2 - differing[np.ix_(given, given)].sum()
            assert alike == len(given), (keys, wanted, owners)
