"""The page Scores: the best score of each algorithm beside published ones, and each environment's details."""

import re

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from backend.db import Run
from backend.db.engine import writing
from backend.specs.states import RunState
from tests.browser.axe import serious_violations
from tests.support.rows import evaluation_row, make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.mark.parametrize(
    ("environment", "observation", "actions", "setting", "default"),
    [
        ("ALE/Pong-v5", "84×84×4 pixels", "6 discrete actions", "No-op starts", "30"),
        ("Labyrinth-Medium-v0", "84×84×3 pixels", "8 discrete actions", "Episode", "60"),
        (
            "Racing-Slow-Continuous-v0",
            "84×84×3 pixels",
            "2-dimensional continuous action",
            "Action repeat",
            "4",
        ),
        (
            "Humanoid-v5",
            "348-dimensional vector",
            "17-dimensional continuous action",
            "Normalise observations",
            "yes",
        ),
        ("Memory-v0", "3-dimensional vector", "2 discrete actions", "Delay", "8"),
    ],
)
def test_row_shows_image_spaces_and_settings_of_its_environment(
    page: Page, environment: str, observation: str, actions: str, setting: str, default: str
) -> None:
    page.goto("/scores")
    page.get_by_role("searchbox", name="Search environments").fill(environment)
    row = page.get_by_role("row").filter(has_text=environment)
    expect(row).to_have_count(1)
    image = row.locator("img")
    page.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=image.element_handle())
    line = row.get_by_role("listitem").filter(has_text=setting)
    expect(line).to_be_hidden()
    row.locator("summary").click()
    expect(row.get_by_text(observation, exact=True)).to_be_visible()
    expect(row.get_by_text(actions, exact=True)).to_be_visible()
    expect(line).to_contain_text(default)


def store_scores(engine: Engine) -> None:
    """Three seeds of PAAC on Pong, and one run of A3C on Pong and on Breakout."""
    runs = [("paac", "Pong", seed, 15.0 + seed) for seed in range(3)]
    runs += [("a3c", "Pong", 0, 3.0), ("a3c", "Breakout", 0, 20.0)]
    for algorithm, game, seed, score in runs:
        request = {"algorithm": algorithm, "environment": f"ALE/{game}-v5", "seed": seed}
        run = make_run(engine, RunState.FINISHED, **request)
        with writing(engine) as session:
            session.get_one(Run, run.id).agent_steps = 1_000_000
            session.add(evaluation_row(run.id, 1_000_000, score, protocol="noop_starts"))


def test_scores_stand_beside_published_ones_and_are_normalised_on_demand(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page = service_page
    store_scores(sqlite_service.engine)
    page.goto("/scores?q=pong")
    row = page.get_by_role("row").filter(has_text="Pong").first
    expect(row).to_contain_text("no-op starts")
    paac = row.get_by_role("link", name=re.compile("^PAAC, Pong: 16.0"))
    expect(paac).to_have_attribute("href", re.compile(r"^/\?list=beside&runs=\w{26}%2C"))
    expect(paac).to_have_attribute("title", re.compile("mean of the last evaluations of 3 runs.*1,000,000"))
    expect(row.get_by_role("cell").filter(has_text="14.6")).to_be_visible()  # a person, from no-op starts
    foot = page.get_by_role("row").filter(has_text="IQM")
    expect(foot).to_contain_text("over 1 environment")
    page.get_by_role("switch", name="Human-normalised").click()
    page.wait_for_url("**normalised=true**")
    # 100 (16 + 20.7) / (14.6 + 20.7).
    expect(row.get_by_role("link", name=re.compile("^PAAC, Pong: 104.0.%"))).to_be_visible()
    expect(page.get_by_text("dqn_zoo")).to_be_visible()
    profile = page.get_by_role("region", name="Performance profile")
    expect(profile).to_contain_text("Optimality gap: PAAC 0.00\u00a0%, A3C 32.9\u00a0%")
    expect(profile.get_by_role("img", name=re.compile("^Performance profile"))).to_be_visible()
    assert serious_violations(page) == {}

    # Without PAAC, whose only score is of Pong, the foot is over both games.
    page.get_by_role("button", name=re.compile("^Columns: ")).click()
    page.get_by_role("checkbox", name=re.compile("^PAAC \\(")).click()
    expect(foot).to_contain_text("over 2 environments")


def test_seeds_and_budget_of_a_score_take_two_lines_on_a_phone(
    service_page: Page, sqlite_service: RunningService
) -> None:
    store_scores(sqlite_service.engine)
    page = service_page
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/scores?q=pong")
    cell = page.get_by_role("cell").filter(has=page.get_by_role("link", name=re.compile("^A3C, Pong")))
    words = cell.locator("div").last
    expect(words).to_have_text("1 seed, 1.0M")
    assert words.evaluate("words => words.clientHeight / parseFloat(getComputedStyle(words).lineHeight)") <= 2


def test_missing_cell_opens_the_form_of_the_run_that_fills_it(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page = service_page
    page.goto("/scores?q=breakout&protocol=noop_starts")
    page.get_by_role("link", name="Train Gorila DQN on Breakout", exact=True).click()
    page.wait_for_url("**/new?**")
    expect(page.get_by_role("option", name="Breakout")).to_have_attribute("aria-selected", "true")
    expect(
        page.get_by_role("radiogroup", name="Algorithm").get_by_role("radio", name=re.compile("Gorila"))
    ).to_be_checked()
    page.goto(page.url + "&all=true")
    expect(page.locator("[name='config.evaluation_protocol']")).to_have_value("noop_starts")
