"""A chart exported as a figure for a paper."""

import csv
import io
import math
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree
from zipfile import ZipFile

import cv2
import numpy as np
import pytest
from fontTools.ttLib import TTFont
from playwright.sync_api import Locator, Page, expect
from sqlalchemy import Engine

from backend.analysis.metrics import repository as series
from backend.db.engine import writing
from backend.specs.events import PointsEvent
from backend.specs.states import RunState
from tests.browser.axe import serious_violations
from tests.browser.test_scores import store_scores
from tests.support.artifacts import make_episode
from tests.support.pdf import PdfPage
from tests.support.rows import make_run
from tests.support.service import RunningService
from tests.support.start_sets import add_recording

pytestmark = pytest.mark.browser

RATES = (0.1, 0.03, 0.01, 0.003, 0.001)
INK = (0.106, 0.118, 0.137)
"""Of the light theme's text."""
FORMATS = {"pdf": ".pdf", "svg": ".svg", "png": ".png", "csv": ".csv", "zip": ".zip"}


def five_configs(engine: Engine, n_seeds: int) -> list[str]:
    """Runs with returns that rise, differently for each learning rate and seed."""
    ids = []
    for at, rate in enumerate(RATES):
        for seed in range(n_seeds):
            run = make_run(engine, RunState.FINISHED, seed=seed, config={"learning_rate": rate})
            steps = list(range(1000, 31_000, 1000))
            points = PointsEvent(
                metric="rollout/episode_return",
                agent_steps=steps,
                frames=steps,
                wall_time_s=[step / 1000 for step in steps],
                episodes=list(range(len(steps))),
                value=[(at + 1) * step / 1000 + seed for step in steps],
            )
            with writing(engine) as session:
                series.append(session, run.id, 1, 1, [points])
            ids.append(run.id)
    return ids


def export_dialog(page: Page, runs: list[str]) -> Locator:
    """The dialog of the comparison of groups of runs, with its preview."""
    page.goto("/compare?runs=" + ",".join(runs))
    page.get_by_role("radiogroup", name="Group curves").get_by_text("Configs").click()
    page.get_by_role("button", name="Options for").first.click()
    page.get_by_role("menuitem", name="Export figure…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("img", name="Preview").locator("svg")).to_be_visible()
    return dialog


def downloaded(dialog: Locator, form: str) -> bytes:
    dialog.get_by_label("Format").select_option(form)
    with dialog.page.expect_download() as saved:
        dialog.get_by_role("button", name="Download").click()
    assert saved.value.suggested_filename.endswith(FORMATS[form])
    return saved.value.path().read_bytes()


def assert_readable(pdf: PdfPage, width_pt: float) -> None:
    assert pdf.width_pt == pytest.approx(width_pt, abs=0.1)
    assert pdf.outside == []
    assert pdf.overlapping == []
    for font in pdf.fonts.values():
        assert font.file is not None, f"{font.name} is not embedded"
        assert TTFont(io.BytesIO(font.file))["glyf"].keys()
    texts = [text.text for text in pdf.texts]
    legend = [f"lr {rate:.3g} (n = 2)" for rate in RATES]
    assert " ".join(legend) in " ".join(texts), "whole, in one line or two"
    assert {"Agent steps", "Return (true score)"} <= set(texts)


def test_pdf_of_five_configs_is_light_with_embedded_fonts_and_readable_labels(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page = service_page
    page.emulate_media(color_scheme="dark")
    dialog = export_dialog(page, five_configs(sqlite_service.engine, 2))
    pdf = PdfPage(downloaded(dialog, "pdf"))
    assert_readable(pdf, 3.25 * 72)
    assert {text.colour for text in pdf.texts} == {INK}
    expect(dialog.get_by_role("status", name="Problems of the figure")).to_have_text("")


@pytest.mark.long
def test_export_dialog_has_no_serious_axe_violation(
    service_page: Page, sqlite_service: RunningService
) -> None:
    dialog = export_dialog(service_page, five_configs(sqlite_service.engine, 2))
    violations = {}
    for form in FORMATS:
        dialog.get_by_label("Format").select_option(form)
        if serious := serious_violations(service_page):
            violations[form] = serious
    assert not violations


@pytest.mark.long
def test_figure_is_exported_in_every_format_and_size(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path
) -> None:
    page = service_page
    dialog = export_dialog(page, five_configs(sqlite_service.engine, 2))
    dialog.get_by_label("Title").fill(
        "Learning rates of PAAC, ε < 1 & β → 0, in one figure with a long title"
    )
    for width, width_in in (("slide", 10.0), ("page", 6.75), ("column", 3.25)):
        dialog.get_by_label("Width", exact=True).select_option(width)
        for legend in ("below", "inside", "right"):
            if (width, legend) == ("column", "right"):
                continue  # no room for a plot beside it
            dialog.get_by_label("Legend").select_option(legend)
            assert_readable(PdfPage(downloaded(dialog, "pdf")), 72 * width_in)
    dialog.get_by_label("Legend").select_option("below")
    svg = ElementTree.fromstring(downloaded(dialog, "svg"))
    assert svg.get("width") == "3.25in"
    texts = [element.text for element in svg.iter() if element.tag.endswith("}text")]
    assert {"Agent steps", "Return (true score)"} <= set(texts)
    assert "font/woff" in "".join(style.text or "" for style in svg.iter() if style.tag.endswith("}style"))
    png = downloaded(dialog, "png")
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20]) == 2 * 312
    rows = list(csv.DictReader(downloaded(dialog, "csv").decode().splitlines()))
    lines = page.evaluate(
        "() => document.querySelector('[role=img][aria-label^=\"Learning curves\"]').data"
        ".filter(trace => trace.meta?.kind === 'line')"
        ".map(trace => Array.from(trace.y, y => Number.isFinite(y) ? y : null))"
    )
    assert [float(row["y"]) if row["y"] else None for row in rows] == [
        value for line in lines for value in line
    ]
    with ZipFile(io.BytesIO(downloaded(dialog, "zip"))) as archive:
        archive.extractall(tmp_path)
    subprocess.run([sys.executable, "-W", "error", str(tmp_path / "seed_curve.py")], check=True)
    assert b"/MediaBox [ 0 0 234 " in (tmp_path / "seed_curve.pdf").read_bytes()


@pytest.mark.long
def test_stretch_of_nan_is_hatched_and_counted_in_what_the_page_draws(
    service_page: Page, sqlite_service: RunningService
) -> None:
    run = make_run(sqlite_service.engine, RunState.FINISHED)
    steps = list(range(1000, 41_000, 1000))
    points = PointsEvent(
        metric="loss/policy",
        agent_steps=steps,
        frames=steps,
        wall_time_s=[step / 1000 for step in steps],
        episodes=list(range(len(steps))),
        value=[math.nan if 15_000 < step <= 25_000 else step / 1000 for step in steps],
    )
    with writing(sqlite_service.engine) as session:
        series.append(session, run.id, 1, 1, [points])
    page = service_page
    page.goto(f"/runs/{run.id}")
    page.get_by_role("button", name=re.compile("^Options for .*loss.policy")).first.click()
    page.get_by_role("menuitem", name="Export figure…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("img", name="Preview").locator("svg")).to_be_visible()

    svg = downloaded(dialog, "svg").decode()
    [pattern] = set(re.findall(r'<pattern[^>]* id="([^"]+)"', svg))
    assert f"#{pattern}" in svg.split("</defs>", 1)[1]

    image = cv2.imdecode(np.frombuffer(downloaded(dialog, "png"), np.uint8), cv2.IMREAD_COLOR)
    assert image is not None
    blue, _, red = (channel.astype(int) for channel in np.moveaxis(image, 2, 0))
    hatched = np.flatnonzero((red - blue > 40).sum(axis=0) > 20)
    shares = hatched / image.shape[1]
    assert 0.3 < shares.min() < shares.max() < 0.8, "a part of the plot, not all of it"
    assert len(hatched) > 0.8 * (hatched.max() - hatched.min())

    file = downloaded(dialog, "pdf")
    assert "10 NaN" in [text.text for text in PdfPage(file).texts]
    assert b"/PatternType 1" in file
    expect(dialog).to_contain_text("Hatched where values are not finite: 10 NaN.")


def assert_exported(page: Page, within: Locator, texts: set[str]) -> list[dict[str, str]]:
    """The figure of the button can be read as PDF of every width, with these texts, and is there in the other
    formats; returns the rows of its CSV."""
    within.get_by_role("button", name="Export figure…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("img", name="Preview").locator("svg")).to_be_visible()
    for width, width_in in (("slide", 10.0), ("page", 6.75), ("column", 3.25)):
        dialog.get_by_label("Width", exact=True).select_option(width)
        pdf = PdfPage(downloaded(dialog, "pdf"))
        assert pdf.width_pt == pytest.approx(72 * width_in, abs=0.1)
        assert (width, pdf.outside, pdf.overlapping) == (width, [], [])
        assert texts <= {text.text for text in pdf.texts}
    expect(dialog.get_by_role("status", name="Problems of the figure")).to_have_text("")
    for form, start in (("svg", b"<svg"), ("png", b"\x89PNG"), ("zip", b"PK")):
        assert downloaded(dialog, form).startswith(start)
    return list(csv.DictReader(downloaded(dialog, "csv").decode().splitlines()))


@pytest.mark.long
def test_profile_of_the_scores_is_exported(service_page: Page, sqlite_service: RunningService) -> None:
    store_scores(sqlite_service.engine)
    page = service_page
    page.emulate_media(color_scheme="dark")
    page.goto("/scores?normalised=true")
    profile = page.get_by_role("region", name="Performance profile")
    rows = assert_exported(
        page, profile, {"PAAC", "A3C", "Human-normalised score (%)", "Share of runs above"}
    )
    assert {row["series"] for row in rows} == {"PAAC", "A3C"}
    expect(page.get_by_role("dialog")).to_contain_text("4 runs. Optimality gap: PAAC 0 %, A3C 32.9 %.")


@pytest.mark.long
def test_timeline_of_a_replay_is_exported_with_a_row_for_each_agent_step(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path
) -> None:
    run = make_run(sqlite_service.engine)
    store = sqlite_service.artifacts
    episode = make_episode(sqlite_service.engine, run, store, tmp_path, lives=(3, 3, 2, 2, 1))
    page = service_page
    page.goto(f"/runs/{run.id}/episodes/{episode.id}")
    names = {"Reward", "V", "Discounted return", "Value error"}
    texts = names | {"Value", "Agent steps in the episode"}
    rows = assert_exported(page, page.get_by_role("group", name="Episode player"), texts)
    assert {row["series"] for row in rows} == names
    assert [row["x"] for row in rows if row["series"] == "V"] == ["1", "2", "3", "4", "5"]
    values = [row["y"] for row in rows if row["series"] == "V"]
    assert values == ["0.1", "", "", "2", "3"], "what is not finite is empty"
    caption = page.get_by_role("dialog").get_by_role("region", name="Caption")
    expect(caption).to_contain_text("Value error: V minus discounted return. Dotted: life lost.")
    title = page.get_by_role("dialog").get_by_label("Title")
    title.press_sequentially("Lives, 1 error.")
    expect(title).to_have_value("Lives, 1 error.")  # none of them is a key of the player


@pytest.mark.long
def test_timeline_of_a_game_is_exported(service_page: Page, sqlite_service: RunningService) -> None:
    me = sqlite_service.client.get("/api/v1/auth/me").json()["id"]
    game = add_recording(sqlite_service.engine, me, n=6, rewards=[0, 1, 0, 0, 4, 0])
    page = service_page
    page.goto(f"/play/recordings/{game}")
    player = page.get_by_role("group", name="Episode player")
    rows = assert_exported(page, player, {"Reward", "Agent steps in the episode"})
    assert [row["y"] for row in rows] == ["0", "1", "0", "0", "4", "0"]
