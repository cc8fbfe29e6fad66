"""Accessibility violations of a page, reported by axe."""

from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, ViewportSize

_AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
# Of WCAG 2.2, off by default. It excepts targets whose place is what they say, such as points on a scale.
_RUN = """async impacts => {
  const rules = {'target-size': {enabled: true}};
  const {violations} = await axe.run(document, {resultTypes: ['violations'], rules});
  const isExcepted = ({id}, node) => id === 'target-size' && node.html.includes('data-placed-by-value');
  return violations
    .filter(({impact}) => impacts.includes(impact))
    .map(rule => ({...rule, nodes: rule.nodes.filter(node => !isExcepted(rule, node))}))
    .filter(({nodes}) => nodes.length > 0)
    .map(({id, nodes}) => `${id}: ${nodes.map(node => node.target.join(' ')).slice(0, 5).join(' | ')}`);
}"""
_SERIOUS = ("serious", "critical")
_ALL = ("minor", "moderate", *_SERIOUS)
_IN_THEME = "theme => document.documentElement.dataset.mantineColorScheme === theme"

Variant = tuple[ViewportSize, Literal["light", "dark"]]

_DESKTOP: ViewportSize = {"width": 1280, "height": 800}
_LARGE: ViewportSize = {"width": 1920, "height": 1080}
_PHONE: ViewportSize = {"width": 390, "height": 844}
VARIANTS: tuple[Variant, ...] = (
    (_DESKTOP, "light"),
    (_PHONE, "dark"),
    (_DESKTOP, "dark"),
    (_PHONE, "light"),
    (_LARGE, "dark"),
    (_LARGE, "light"),
)
"""Each size in each theme."""


def serious_violations(page: Page, variants: tuple[Variant, ...] = VARIANTS) -> dict[str, list[str]]:
    """Serious and critical violations of a page by variant: a width and a theme."""
    return _violations(page, variants, _SERIOUS)


def axe_violations(page: Page, variants: tuple[Variant, ...] = VARIANTS) -> dict[str, list[str]]:
    """Violations of a page of whatever impact, by variant."""
    return _violations(page, variants, _ALL)


def violations(page: Page) -> list[str]:
    """Violations of a page of whatever impact, as it is."""
    page.evaluate(_AXE.read_text())
    rules: list[str] = page.evaluate(_RUN, _ALL)
    return rules


def _violations(page: Page, variants: tuple[Variant, ...], impacts: tuple[str, ...]) -> dict[str, list[str]]:
    page.add_style_tag(content="* { transition: none !important }")  # no colours in transition
    page.evaluate(_AXE.read_text())
    by_variant: dict[str, list[str]] = {}
    for size, theme in variants:
        page.set_viewport_size(size)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.wait_for_function(_IN_THEME, arg=theme)
        if rules := page.evaluate(_RUN, impacts):
            by_variant[f"{size['width']} {theme}"] = rules
    page.set_viewport_size(_DESKTOP)
    return by_variant
