"""The page Papers, and a study from its start to its figure."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import select

from backend.db import ExperimentCell, Run
from backend.db.engine import writing
from backend.runs.runs import service as run_service
from backend.specs.states import RunState
from tests.browser.axe import serious_violations
from tests.support.pdf import PdfPage
from tests.support.rows import PATHS, evaluation_row
from tests.support.service import RunningService

pytestmark = pytest.mark.browser


def finish_runs(service: RunningService) -> None:
    """Finish the queued runs; the score is highest at a learning rate of 0.001."""
    with writing(service.engine) as session:
        for run in session.scalars(select(Run).where(Run.state == RunState.QUEUED)).all():
            for state in PATHS[RunState.FINISHED]:
                run_service.transition(session, run, state, "for the test")
            run.score = 100 - abs(run.spec["config"]["learning_rate"] - 0.001) * 1e4
            run.agent_steps = 20_000
            session.add(evaluation_row(run.id, 20_000, run.score))


def await_no_overflow(page: Page) -> None:
    """Wait until the page does not scroll to the right: charts follow the size of the window."""
    page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.long
def test_figure_of_a_paper_is_reproduced_in_three_clicks_and_fills_in(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page = service_page
    page.goto("/")
    page.get_by_role("link", name="Papers").click()
    card = page.get_by_role("region", name=re.compile("^A3C, Figure 2:"))
    expect(card).to_contain_text("A wide range of learning rates")
    card.get_by_role("button", name="Reproduce").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Cost")).to_contain_text("24")
    expect(dialog).to_contain_text("24 learning rates instead of 50")
    assert not serious_violations(page)
    dialog.get_by_role("button", name="Start 24 runs").click()

    page.wait_for_url(re.compile("/studies/"))
    figure = page.get_by_role("region", name="Score by learning rate")
    expect(figure).to_contain_text("No run has a score yet")
    expect(figure).to_contain_text("virtually no score of 0")
    expect(page.get_by_label("Summary")).to_contain_text("0 of 24 runs")
    finish_runs(sqlite_service)
    page.reload()
    expect(figure.get_by_role("img").first).to_be_visible()
    expect(figure).to_contain_text("highest score")
    expect(page.get_by_role("region", name="Runs", exact=True)).to_contain_text("finished")
    expect(page.get_by_role("table").first).to_contain_text("10 / 24")
    assert not serious_violations(page)
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        expect(figure.get_by_role("img").first).to_be_visible()
        await_no_overflow(page)


def test_study_is_extended_stopped_and_deleted_on_its_page(
    service_page: Page, sqlite_service: RunningService
) -> None:
    study: dict[str, Any] = sqlite_service.client.post(
        "/api/v1/studies", json={"item": "paac-figure-3"}
    ).json()
    page = service_page
    page.goto(f"/studies/{study['id']}")
    page.get_by_role("button", name="Extend").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Further seeds").fill("1")
    dialog.get_by_role("button", name="Add 5 runs").click()
    dialog.wait_for(state="detached")
    expect(page.get_by_label("Summary")).to_contain_text("0 of 15 runs")
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("stopped on request")).to_be_visible()
    with writing(sqlite_service.engine) as session:
        assert len(session.scalars(select(ExperimentCell)).all()) == 15
    page.get_by_role("button", name="More actions for").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url(re.compile("/papers$"))
    expect(page.get_by_role("heading", name="Papers")).to_be_visible()


@pytest.mark.long
def test_grid_of_a_study_is_exported_as_a_pdf_with_readable_labels(
    service_page: Page, sqlite_service: RunningService
) -> None:
    study = sqlite_service.client.post("/api/v1/studies", json={"item": "a3c-figure-2"}).json()
    finish_runs(sqlite_service)
    page = service_page
    page.goto(f"/studies/{study['id']}")
    figure = page.get_by_role("region", name="Score by learning rate")
    figure.get_by_role("button", name="Export figure…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("img", name="Preview").locator("svg")).to_be_visible()
    for width, width_in in (("column", 3.25), ("page", 6.75), ("slide", 10.0)):
        dialog.get_by_label("Width", exact=True).select_option(width)
        with page.expect_download() as saved:
            dialog.get_by_role("button", name="Download").click()
        pdf = PdfPage(saved.value.path().read_bytes())
        assert pdf.width_pt == pytest.approx(72 * width_in, abs=0.1)
        assert (pdf.outside, pdf.overlapping) == ([], []), width
    expect(dialog.get_by_role("status", name="Problems of the figure")).to_have_text("")
    assert not serious_violations(page)


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1280])
def test_page_papers_fits_its_width_without_axe_violations(service_page: Page, width: int) -> None:
    page = service_page
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/papers")
    expect(page.get_by_role("button", name="Reproduce Figure 7 of GA3C")).to_be_attached()
    await_no_overflow(page)
    assert not serious_violations(page)
