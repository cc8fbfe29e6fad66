"""Figures have the colours of the pages on which they are shown."""

import re
from pathlib import Path

import pytest

from backend.drawing.palette import Theme
from backend.drawing.theme import muted, template

STYLES = Path(__file__).parents[3] / "frontend/src/styles/global.css"


def _colours(theme: Theme) -> dict[str, str]:
    """The colours of the pages by their names."""
    text = STYLES.read_text("utf-8")
    [block] = re.findall(rf"^:root\[data-mantine-color-scheme='{theme}'\] \{{(.*?)^\}}", text, re.M | re.S)
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figures_have_the_colours_of_the_panels(theme: Theme) -> None:
    page, layout = _colours(theme), template(theme)["layout"]
    assert {layout["paper_bgcolor"], layout["plot_bgcolor"], layout["hoverlabel"]["bgcolor"]} == {
        page["panel"]
    }
    assert layout["xaxis"]["gridcolor"] == page["line"]
    assert layout["xaxis"]["linecolor"] == page["line-strong"]
    assert layout["font"]["color"] == page["text"]
    assert muted(theme) == page["muted"]
