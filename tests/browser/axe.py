"""What axe finds on a page, in every look the page has."""

from pathlib import Path

from playwright.sync_api import Page, ViewportSize

_AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
_RUN = """async () => {
  const found = await axe.run(document, {resultTypes: ['violations']});
  return found.violations
    .filter(({impact}) => impact === 'serious' || impact === 'critical')
    .map(({id, nodes}) => `${id}: ${nodes.map(node => node.target.join(' ')).slice(0, 5).join(' | ')}`);
}"""
_IN_THEME = "theme => document.documentElement.dataset.mantineColorScheme === theme"
_SIZES: tuple[ViewportSize, ...] = ({"width": 1280, "height": 800}, {"width": 390, "height": 844})


def serious_faults(page: Page) -> dict[str, list[str]]:
    """Serious and critical faults by look: at a desk and on a phone, light and dark."""
    page.add_style_tag(content="* { transition: none !important }")  # a colour half-way is no theme's
    page.evaluate(_AXE.read_text())
    faults = {}
    for size in _SIZES:
        page.set_viewport_size(size)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
            page.wait_for_function(_IN_THEME, arg=theme)
            if found := page.evaluate(_RUN):
                faults[f"{size['width']} {theme}"] = found
    page.set_viewport_size(_SIZES[0])
    return faults
