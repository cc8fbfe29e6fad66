"""Choices: environment, preset and algorithm of a new run, columns of the list."""

import re
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect

from backend.db import StartSet
from backend.db.base import new_id
from backend.db.engine import writing
from backend.runs.runs import service as run_service
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.states import RunState
from tests.browser.boxes import tick
from tests.support.rows import add_host, make_checkpoint, make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long]

WHOLE = """name => {
  const {left, right, top, bottom} = name.getBoundingClientRect();
  for (let box = name.parentElement; box; box = box.parentElement) {
    const edge = box.getBoundingClientRect();
    const isWithin = left > edge.left - 1 && right < edge.right + 1
      && top > edge.top - 1 && bottom < edge.bottom + 1;
    if (getComputedStyle(box).overflowX === 'hidden' && !isWithin) return false;
  }
  return true;
}"""
"""Whether no box cuts an element."""


def test_scores_page_filters_and_starts_a_run_form(service_page: Page) -> None:
    page = service_page
    page.goto("/scores")
    page.get_by_role("searchbox", name="Search environments").fill("break")
    page.wait_for_url("**q=break**")
    row = page.get_by_role("row").filter(has_text="ALE/Breakout-v5")
    expect(row).to_contain_text("1.7")  # random play, Mnih et al. 2015
    expect(page.get_by_role("rowheader").filter(has_text="Details")).to_have_count(1)
    row.get_by_role("link", name="New run").click()
    expect(page.get_by_role("option", name="Breakout")).to_have_attribute("aria-selected", "true")
    page.go_back()
    page.get_by_role("searchbox", name="Search environments").fill("")
    page.get_by_role("combobox", name="Family").select_option("mujoco")
    page.wait_for_url("**family=mujoco**")
    expect(page.get_by_role("row").filter(has_text="no-op starts")).to_have_count(0)


def test_preset_fills_the_form_and_updates_the_cost(service_page: Page) -> None:
    page = service_page
    page.goto("/new?environment=ALE/Breakout-v5&all=true")
    workers = page.locator("[name='config.n_w']")
    expect(workers).to_have_value("2")
    page.get_by_role("radiogroup", name="Preset").get_by_role("radio", name=re.compile("^Defaults")).click()
    expect(workers).to_have_value("8")
    cost = page.get_by_role("status", name="Cost")
    page.locator("[name='stop.agent_steps']").fill("2,000,000")
    expect(cost).to_contain_text("8.0M frames")
    page.get_by_label("Number of seeds").fill("3")
    expect(cost).to_contain_text("3 runs, each")
    page.get_by_role("radiogroup", name="Algorithm").get_by_text("GA3C").click()
    expect(page.get_by_role("region", name="Parallelism")).to_contain_text("Predictors")


def _select_environment(page: Page, env: str) -> None:
    page.get_by_role("combobox", name="Search environments").fill(env)
    page.get_by_role("listbox", name="Environment").get_by_title(env, exact=True).click()


def _family_presets(page: Page) -> set[str]:
    """The offered presets that are specific to a family of environments."""
    texts = page.get_by_role("radiogroup", name="Preset").get_by_role("radio").all_inner_texts()
    return {text.splitlines()[0] for text in texts} & {COMPACT, MAZE, RACE, SMALL}


def _selected(page: Page, group: str = "Preset") -> str:
    selected = page.get_by_role("radiogroup", name=group).get_by_role("radio", checked=True)
    return selected.inner_text().splitlines()[0]


COMPACT, MAZE, RACE, SMALL = (
    f"{what}, 2 CPU cores"
    for what in ("Compact LSTM, full frame", "Labyrinth", "Racing", "Small environment")
)
"""A3C's presets, each for one family of environments."""
PLAIN = "The paper's feed-forward agent, 4 actors"


def test_new_environment_selects_the_preset_of_its_family(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page = service_page
    rate, entropy = page.locator("[name='config.learning_rate']"), page.locator("[name='config.beta']")
    size = page.locator("[name='environment_config.observation_size']")
    page.goto("/new?environment=ALE/Pong-v5&algorithm=a3c")
    expect(size).to_have_value("42x42")
    assert _family_presets(page) == {COMPACT}
    _select_environment(page, "Labyrinth-Small-v0")
    expect(entropy).to_have_value("0.001")
    expect(rate).to_have_value("0.0003")
    expect(size).to_have_count(0)
    assert _family_presets(page) == {MAZE}
    assert _selected(page) == MAZE
    _select_environment(page, "Racing-Slow-v0")
    expect(entropy).to_have_value("0.01")
    assert _family_presets(page) == {RACE}
    assert _selected(page) == RACE
    _select_environment(page, "Catch-v0")
    expect(rate).to_have_value("0.001")
    assert _family_presets(page) == {SMALL}
    _select_environment(page, "CartPole-v1")
    expect(rate).to_have_value("0.003")
    assert _family_presets(page) == set()
    assert _selected(page) == "Defaults"
    _select_environment(page, "Labyrinth-Small-v0")
    expect(entropy).to_have_value("0.001")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs/*")
    spec = sqlite_service.client.get(f"/api/v1/runs/{page.url.rsplit('/', 1)[1]}").json()["spec"]
    [preset] = [preset for preset in ALGORITHMS["a3c"].presets if preset.title == MAZE]
    env = ENVIRONMENTS["Labyrinth-Small-v0"]
    assert spec["config"] == ALGORITHMS["a3c"].defaults("pixels") | env.config_defaults | preset.config
    assert spec["stop"]["agent_steps"] == preset.stop["agent_steps"]


def test_general_preset_is_kept_and_out_of_bounds_value_is_reported_in_new_environment(
    service_page: Page,
) -> None:
    page = service_page
    page.goto("/new?environment=Racing-Slow-v0&algorithm=a3c&all=true")
    page.get_by_role("radiogroup", name="Preset").get_by_text(PLAIN).click()
    repeat = page.locator("[name='environment_config.frame_skip']")
    error = page.locator("[id='field-environment_config.frame_skip-error']")
    repeat.fill("50")
    _select_environment(page, "Labyrinth-Small-v0")
    expect(error).to_have_text("Must be 1 to 35.")
    assert _selected(page) == PLAIN
    page.get_by_role("button", name="Start run").click()
    expect(repeat).to_be_focused()
    page.get_by_role("radiogroup", name="Preset").get_by_text(MAZE).click()
    expect(error).to_have_count(0)
    expect(repeat).to_have_value("4")


def test_only_algorithms_that_support_the_action_space_are_offered(service_page: Page) -> None:
    page = service_page
    page.goto("/new?environment=Racing-Slow-v0&algorithm=dqn")
    assert _selected(page, "Algorithm") == "DQN"
    _select_environment(page, "Racing-Slow-Continuous-v0")
    expect(page.get_by_role("radiogroup", name="Algorithm")).not_to_contain_text("DQN")
    assert _selected(page, "Algorithm") == "A3C"
    assert _selected(page) == RACE
    page.goto("/new?environment=HalfCheetah-v5&algorithm=paac")
    assert _selected(page, "Algorithm") == "A3C"


def test_chosen_columns_stay_after_reload(service_page: Page, sqlite_service: RunningService) -> None:
    make_run(sqlite_service.engine, RunState.FINISHED, name="one run", config={"learning_rate": 0.0123})
    page = service_page
    page.goto("/")
    page.get_by_role("button", name="Columns").click()
    menu = page.get_by_role("dialog", name="Columns")
    menu.get_by_role("checkbox", name="Tags").click()
    menu.get_by_role("searchbox").fill("learning rate")
    tick(menu.get_by_role("checkbox", name="Learning rate", exact=True))
    page.keyboard.press("Escape")
    width = page.get_by_role("separator", name="Width of Name")
    width.focus()
    before = page.get_by_role("columnheader").filter(has=width).bounding_box()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("name(:|%3A)176px"))
    page.reload()
    # The table goes on behind the edge; the menu of a row stays in view.
    page.set_viewport_size({"width": 900, "height": 800})
    expect(page.get_by_role("gridcell", name="0.0123")).to_be_attached()
    assert page.get_by_role("grid", name="Runs").evaluate(
        "({parentElement: {scrollWidth, clientWidth}}) => scrollWidth > clientWidth + 100"
    )
    expect(page.get_by_role("button", name="Actions for one run")).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(page.get_by_role("columnheader", name="Age", exact=True)).to_be_visible()
    expect(page.get_by_role("columnheader", name="Tags")).to_have_count(0)
    expect(page.get_by_role("gridcell", name="0.0123")).to_be_visible()
    after = page.get_by_role("columnheader").filter(has=width).bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] == pytest.approx(before["width"] + 12, abs=1)


@pytest.mark.parametrize("address", ["/", "/compare"])
def test_names_on_a_phone_are_whole(service_page: Page, sqlite_service: RunningService, address: str) -> None:
    config = {"n_e": 4, "n_w": 1, "evaluation_episodes": 0}
    rates = (0.0001, 0.00123)
    for rate in rates:
        for seed in range(2):
            make_run(
                sqlite_service.engine, RunState.FINISHED, config=config | {"learning_rate": rate}, seed=seed
            )
    page = service_page
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address)
    for rate in rates:
        for seed in range(2):
            name = page.get_by_role("main").get_by_text(f"lr {rate} · seed {seed}", exact=True)
            expect(name).to_be_visible()
            assert name.evaluate(WHOLE)


def test_form_names_the_extra_that_every_host_lacks(
    service_page: Page, sqlite_service: RunningService
) -> None:
    racing = [name for name in ENVIRONMENTS if name.startswith("Racing-")]
    others = [name for name in ENVIRONMENTS if name not in racing]
    add_host(sqlite_service.engine, "a", environments=others, versions={"ray": "2", "pyarrow": "2"})
    page = service_page
    page.goto(f"/new?environment={racing[0]}")
    note = page.get_by_role("note").filter(has_text="callboard[racing]")
    expect(note).to_contain_text("which no host has. On one: pip install 'callboard[racing]'.")
    expect(page.get_by_role("option", selected=True).first).to_contain_text("not installed")
    start = page.get_by_role("button", name=re.compile("^Start"))
    expect(start).to_have_attribute("aria-disabled", "true")
    start.click(force=True)
    assert sqlite_service.client.get("/api/v1/runs").json()["total"] == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_largest_runs_show_whole_names(
    service_page: Page, sqlite_service: RunningService, width: int
) -> None:
    config = {"learning_rate": 0.0001, "n_e": 4, "n_w": 1, "evaluation_episodes": 0}
    run = make_run(sqlite_service.engine, RunState.FINISHED, config=config)
    other = make_run(sqlite_service.engine, RunState.FINISHED, config=config | {"learning_rate": 0.00123})
    for stored in (run, other):
        make_checkpoint(sqlite_service.engine, stored)
    page = service_page
    page.set_viewport_size({"width": width, "height": 844})
    page.goto("/settings/storage")
    name = page.get_by_role("region", name="Largest runs").get_by_title(run.name, exact=True)
    expect(name).to_have_text("lr 0.0001")
    assert name.evaluate(WHOLE)


def test_players_of_a_start_set_stand_beside_its_buttons_on_a_phone(
    service_page: Page, sqlite_service: RunningService
) -> None:
    with writing(sqlite_service.engine) as session:
        session.add(
            StartSet(
                id=new_id(),
                created_at=datetime.now(UTC),
                name="from-a-long-session",
                version=2,
                environment="ALE/SpaceInvaders-v5",
                source="human",
                origin="6 recordings of 2 people",
                n_points=100,
                n_games=6,
                n_people=2,
                state="ready",
                sha256="0" * 64,
            )
        )
    page = service_page
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/settings/storage")
    players = page.get_by_role("cell", name="2 people", exact=True)
    expect(players).to_be_visible()
    cell = players.bounding_box()
    buttons = (
        page.get_by_role("cell")
        .filter(has=page.get_by_role("button", name="Delete from-a-long-session v2"))
        .bounding_box()
    )
    assert cell is not None
    assert buttons is not None
    assert cell["x"] + cell["width"] <= buttons["x"] + 1
    label = page.get_by_role("button", name="Delete from-a-long-session v2").locator("[class*=label]")
    assert label.evaluate("label => label.scrollWidth - label.clientWidth") <= 0


def test_names_in_the_queue_are_whole(service_page: Page, sqlite_service: RunningService) -> None:
    config = {"learning_rate": 0.0001, "n_e": 4, "n_w": 1, "evaluation_episodes": 0}
    run = make_run(sqlite_service.engine, config=config)
    page = service_page
    page.goto("/machines")
    name = page.get_by_title(run.name, exact=True)
    expect(name).to_have_text("PAAC on CartPole")
    assert name.evaluate(WHOLE)


def test_row_shows_the_whole_name_and_the_time_left(
    service_page: Page, sqlite_service: RunningService
) -> None:
    created = make_run(sqlite_service.engine, RunState.RUNNING, config={"learning_rate": 0.0001, "n_e": 4})
    with writing(sqlite_service.engine) as session:
        run = run_service.find(session, created.id, for_update=True)
        assert run is not None
        run.agent_steps, run.agent_steps_per_s = 3_160, 0.12
    make_run(sqlite_service.engine, config={"learning_rate": 0.00123, "n_e": 4})
    page = service_page
    page.goto("/")
    name = page.get_by_role("grid", name="Runs").get_by_role("link", name=created.name)
    expect(name).to_have_text("lr 0.0001")
    assert name.evaluate(WHOLE)
    assert page.evaluate("window.find('lr 0.0001')"), "the browser's search finds a name"
    page_scroll = "document.documentElement.scrollHeight - document.documentElement.clientHeight"
    assert page.evaluate(page_scroll) == 0, "only the table scrolls"
    left = page.get_by_role("gridcell").filter(
        has=page.get_by_role("progressbar", name=f"Progress of {created.name}")
    )
    expect(left).to_contain_text("15\N{NO-BREAK SPACE}h")
    assert left.evaluate("element => element.scrollWidth - element.clientWidth") == 0
