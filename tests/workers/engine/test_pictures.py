"""The pictures of the Worlds page."""

from pathlib import Path

from backend.specs.environments import ENVIRONMENTS
from workers.engine.envs.pictures import file_name, picture

FOLDER = Path(__file__).parents[3] / "frontend/src/components/world/pictures"


def test_every_world_has_its_picture() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {file_name(name) for name in ENVIRONMENTS}


def test_a_picture_is_small_and_shows_something() -> None:
    for name in ("ALE/Breakout-v5", "Memory-v0"):
        shown = picture(name)
        assert shown.shape[0] == 96
        assert shown.std() > 5 or name == "Memory-v0"
