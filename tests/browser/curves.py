"""The data drawn in a page's charts."""

from typing import Any

from playwright.sync_api import Page, expect

from tests.support.waiting import PATIENCE_S

_DRAWN = """label => {
  const chart = document.querySelector(`[role=img][aria-label^="${label}"]`);
  const trace = chart?.data?.find(trace => trace.meta?.kind === 'line');
  return trace ? {x: Array.from(trace.x), y: Array.from(trace.y)} : null;
}"""


def drawn(page: Page, label: str = "Learning curve") -> dict[str, list[float]]:
    """X and y of a chart's main line; empty before it is drawn."""
    points: dict[str, Any] | None = page.evaluate(_DRAWN, label)
    return points or {"x": [], "y": []}


def await_points(page: Page, more_than: int = 0, timeout_ms: float = 1000 * PATIENCE_S) -> list[float]:
    """Wait until the learning curve has more than `more_than` points, without reloading; return their x."""
    script = f"([label, n]) => (({_DRAWN})(label)?.x.length ?? 0) > n"
    page.wait_for_function(script, arg=["Learning curve", more_than], timeout=timeout_ms)
    return drawn(page)["x"]


def await_first_x(page: Page, *x: float) -> None:
    """Wait until the learning curve starts at these `x`: until it is drawn as selected."""
    starts = f"([label, xs]) => xs.every((x, i) => ({_DRAWN})(label)?.x[i] === x)"
    page.wait_for_function(starts, arg=["Learning curve", list(x)])


def await_state(page: Page, state: str, timeout_ms: float = 1000 * PATIENCE_S) -> None:
    """Wait until the run's header shows `state`."""
    expect(page.locator("main header").first.get_by_text(state, exact=True)).to_be_visible(timeout=timeout_ms)
