import pytest

from backend.specs.environments import ENVIRONMENTS
from tests.support.crop_share import hidden_share


@pytest.mark.parametrize(("game", "pct"), [("MsPacman", 24), ("Qbert", 18), ("Amidar", 18), ("Pong", 2)])
def test_stored_share_of_pixels_that_the_crop_hides_is_measured(game: str, pct: int) -> None:
    share = hidden_share(f"ALE/{game}-v5")
    assert round(100 * share) == pct
    assert ENVIRONMENTS[f"ALE/{game}-v5"].crop_hides == pytest.approx(share, abs=5e-4)
