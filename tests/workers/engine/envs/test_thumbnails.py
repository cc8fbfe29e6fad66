"""The thumbnails of the Environments page."""

from pathlib import Path

from backend.specs.environments import ENVIRONMENTS
from workers.engine.envs.thumbnails import file_name, thumbnail

SOURCES = Path(__file__).parents[4] / "frontend/src"
FOLDER = next(SOURCES.rglob(file_name("ALE/Pong-v5"))).parent


def test_every_environment_has_a_thumbnail() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {file_name(name) for name in ENVIRONMENTS}


def test_thumbnail_is_small_and_not_blank() -> None:
    for name in ("ALE/Breakout-v5", "Memory-v0"):
        shown = thumbnail(name)
        assert shown.shape[0] == 96
        assert shown.std() > 5 or name == "Memory-v0"
