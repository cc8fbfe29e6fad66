"""Accessibility violations of a page, reported by axe."""

from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, ViewportSize

_AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
_RUN = """async () => {
  const found = await axe.run(document, {resultTypes: ['violations']});
  return found.violations
    .filter(({impact}) => impact === 'serious' || impact === 'critical')
    .map(({id, nodes}) => `${id}: ${nodes.map(node => node.target.join(' ')).slice(0, 5).join(' | ')}`);
}"""
_IN_THEME = "theme => document.documentElement.dataset.mantineColorScheme === theme"

Variant = tuple[ViewportSize, Literal["light", "dark"]]

_DESKTOP: ViewportSize = {"width": 1280, "height": 800}
_PHONE: ViewportSize = {"width": 390, "height": 844}
VARIANTS: tuple[Variant, ...] = (
    (_DESKTOP, "light"),
    (_PHONE, "dark"),
    (_DESKTOP, "dark"),
    (_PHONE, "light"),
)
"""Each size in each theme."""


def serious_violations(page: Page, variants: tuple[Variant, ...] = VARIANTS) -> dict[str, list[str]]:
    """Serious and critical violations of a page by variant: desktop and phone, light and dark."""
    page.add_style_tag(content="* { transition: none !important }")  # no colours in transition
    page.evaluate(_AXE.read_text())
    violations: dict[str, list[str]] = {}
    for size, theme in variants:
        page.set_viewport_size(size)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.wait_for_function(_IN_THEME, arg=theme)
        if rules := page.evaluate(_RUN):
            violations[f"{size['width']} {theme}"] = rules
    page.set_viewport_size(_DESKTOP)
    return violations
