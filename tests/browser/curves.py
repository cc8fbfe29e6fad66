"""What a page's charts show, read from the charts themselves."""

from typing import Any

from playwright.sync_api import Page, expect

_DRAWN = """label => {
  const chart = document.querySelector(`[role=img][aria-label^="${label}"]`);
  const trace = chart?.data?.find(trace => trace.meta?.y === 'smoothed' || trace.meta?.y === 'mean');
  return trace ? {x: Array.from(trace.x), y: Array.from(trace.y)} : null;
}"""


def drawn(page: Page, label: str = "Learning curve") -> dict[str, list[float]]:
    """X and y of a chart's main line; empty while nothing is drawn."""
    found: dict[str, Any] | None = page.evaluate(_DRAWN, label)
    return found or {"x": [], "y": []}


def await_points(page: Page, more_than: int = 0, timeout_ms: int = 60_000) -> list[float]:
    """Wait until the learning curve has more points than that, without reloading; gives their x."""
    script = f"([label, n]) => (({_DRAWN})(label)?.x.length ?? 0) > n"
    page.wait_for_function(script, arg=["Learning curve", more_than], timeout=timeout_ms)
    return drawn(page)["x"]


def await_first_x(page: Page, x: float) -> None:
    """Wait until the learning curve begins at `x`: until it is drawn over the axis just chosen."""
    page.wait_for_function(f"([label, x]) => ({_DRAWN})(label)?.x[0] === x", arg=["Learning curve", x])


def await_state(page: Page, state: str, timeout_ms: int = 60_000) -> None:
    """Wait until the run's header says it is in `state`."""
    expect(page.locator("main header").first.get_by_text(state, exact=True)).to_be_visible(timeout=timeout_ms)
