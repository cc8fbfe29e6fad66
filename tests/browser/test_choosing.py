"""Choosing: a world, a preset, columns."""

import pytest
from playwright.sync_api import Page, expect

from backend.db.engine import writing
from backend.runs import repository
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.states import RunState
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long]


def test_a_world_from_the_table(service_page: Page) -> None:
    page = service_page
    page.goto("/worlds")
    page.get_by_role("searchbox", name="Search worlds").fill("break")
    page.wait_for_url("**q=break**")
    row = page.get_by_role("row").filter(has_text="ALE/Breakout-v5")
    expect(row).to_contain_text("1.7")  # random play, Mnih et al. 2015
    expect(page.get_by_role("row")).to_have_count(2)
    row.get_by_role("link", name="New run").click()
    expect(page.get_by_role("option", name="Breakout")).to_have_attribute("aria-selected", "true")
    page.go_back()
    page.get_by_role("searchbox", name="Search worlds").fill("")
    page.get_by_role("combobox", name="Family").select_option("mujoco")
    page.wait_for_url("**family=mujoco**")
    expect(page.get_by_role("row").filter(has_text="ALE/")).to_have_count(0)


def test_a_preset_fills_the_form_and_the_cost_follows(service_page: Page) -> None:
    page = service_page
    page.goto("/new?environment=ALE/Breakout-v5")
    workers = page.locator("[name='config.n_w']")
    expect(workers).to_have_value("2")
    page.get_by_role("radiogroup", name="Preset").get_by_text("Defaults").click()
    expect(workers).to_have_value("8")
    cost = page.get_by_role("status", name="Cost")
    page.locator("[name='stop.agent_steps']").fill("2,000,000")
    expect(cost).to_contain_text("8.00 M frames")
    page.get_by_label("Number of seeds").fill("3")
    expect(cost).to_contain_text("3 runs, each")
    page.get_by_role("radiogroup", name="Algorithm").get_by_text("GA3C").click()
    expect(page.get_by_role("region", name="Parallelism")).to_contain_text("Predictors")


def _choose_world(page: Page, world: str) -> None:
    page.get_by_role("searchbox", name="Search worlds").fill(world)
    page.get_by_role("listbox", name="World").get_by_title(world, exact=True).click()


def _own(page: Page) -> set[str]:
    """The presets offered that are for one family of worlds."""
    texts = page.get_by_role("radiogroup", name="Preset").get_by_role("radio").all_inner_texts()
    return {text.splitlines()[0] for text in texts} & {COMPACT, MAZE, RACE, SMALL}


def _chosen(page: Page, group: str = "Preset") -> str:
    chosen = page.get_by_role("radiogroup", name=group).get_by_role("radio", checked=True)
    return chosen.inner_text().splitlines()[0]


COMPACT, MAZE, RACE, SMALL = (
    f"{what}, two CPU cores" for what in ("compact LSTM", "a maze", "a race", "a small task")
)
"""A3C's presets for one family of worlds each."""
PLAIN = "as in the paper, two CPU cores"


def test_a_world_brings_its_own_preset_and_leaves_none_behind(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page = service_page
    rate, entropy = page.locator("[name='config.learning_rate']"), page.locator("[name='config.beta']")
    picture = page.locator("[name='environment_config.picture_size']")
    page.goto("/new?environment=ALE/Pong-v5&algorithm=a3c")
    expect(picture).to_have_value("42x42")
    assert _own(page) == {COMPACT}
    _choose_world(page, "Labyrinth-Small-v0")
    expect(entropy).to_have_value("0.001")
    expect(rate).to_have_value("0.0003")
    expect(picture).to_have_count(0)
    assert _own(page) == {MAZE}
    assert _chosen(page) == MAZE
    _choose_world(page, "Racing-Slow-v0")
    expect(entropy).to_have_value("0.01")
    assert _own(page) == {RACE}
    assert _chosen(page) == RACE
    _choose_world(page, "Catch-v0")
    expect(rate).to_have_value("0.001")
    assert _own(page) == {SMALL}
    _choose_world(page, "CartPole-v1")
    expect(rate).to_have_value("0.003")
    assert _own(page) == set()
    assert _chosen(page) == "Defaults"
    _choose_world(page, "Labyrinth-Small-v0")
    expect(entropy).to_have_value("0.001")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs/*")
    spec = sqlite_service.client.get(f"/api/v1/runs/{page.url.rsplit('/', 1)[1]}").json()["spec"]
    [preset] = [one for one in ALGORITHMS["a3c"].presets if one.title == MAZE]
    world = ENVIRONMENTS["Labyrinth-Small-v0"]
    assert spec["config"] == ALGORITHMS["a3c"].defaults("pixels") | world.config_defaults | preset.config
    assert spec["stop"]["agent_steps"] == preset.stop["agent_steps"]


def test_a_preset_for_all_stays_and_what_another_world_forbids_is_told(service_page: Page) -> None:
    page = service_page
    page.goto("/new?environment=Racing-Slow-v0&algorithm=a3c")
    page.get_by_role("radiogroup", name="Preset").get_by_text(PLAIN).click()
    repeat = page.locator("[name='environment_config.frame_skip']")
    wrong = page.locator("[id='setting-environment_config.frame_skip-error']")
    repeat.fill("50")
    _choose_world(page, "Labyrinth-Small-v0")
    expect(wrong).to_have_text("Must be 1 to 35.")
    assert _chosen(page) == PLAIN
    page.get_by_role("button", name="Start run").click()
    expect(repeat).to_be_focused()
    page.get_by_role("radiogroup", name="Preset").get_by_text(MAZE).click()
    expect(wrong).to_have_count(0)
    expect(repeat).to_have_value("4")


def test_only_methods_that_choose_such_actions_are_offered(service_page: Page) -> None:
    page = service_page
    page.goto("/new?environment=Racing-Slow-v0&algorithm=dqn")
    assert _chosen(page, "Algorithm") == "DQN"
    _choose_world(page, "Racing-Slow-Continuous-v0")
    algorithms = page.get_by_role("radiogroup", name="Algorithm").get_by_role("radio")
    expect(algorithms).to_have_count(1)
    assert _chosen(page, "Algorithm") == "A3C"
    assert _chosen(page) == RACE
    page.goto("/new?environment=HalfCheetah-v5&algorithm=paac")
    assert _chosen(page, "Algorithm") == "A3C"


def test_columns_are_remembered(service_page: Page, sqlite_service: RunningService) -> None:
    make_run(sqlite_service.engine, RunState.FINISHED, name="one run")
    page = service_page
    page.goto("/")
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("menuitemcheckbox", name="Tags", checked=True).click()
    page.reload()
    expect(page.get_by_role("columnheader", name="Age", exact=True)).to_be_visible()
    expect(page.get_by_role("columnheader", name="Tags")).to_have_count(0)


def test_a_row_has_room_for_what_tells_runs_apart(service_page: Page, sqlite_service: RunningService) -> None:
    made = make_run(sqlite_service.engine, RunState.RUNNING, config={"learning_rate": 0.0001, "n_e": 4})
    with writing(sqlite_service.engine) as session:
        run = repository.get(session, made.id, for_update=True)
        assert run is not None
        run.agent_steps, run.agent_steps_per_s = 3_160, 0.12
    page = service_page
    page.goto("/")
    name = page.get_by_role("grid", name="Runs").get_by_role("link", name=made.name)
    end = name.get_by_text("=0.0001 n_e=4 seed 0")
    expect(end).to_be_visible()
    assert end.evaluate("element => element.scrollWidth - element.clientWidth") <= 1
    left = page.get_by_role("gridcell").filter(has=page.get_by_role("progressbar"))
    expect(left).to_contain_text("15\N{NO-BREAK SPACE}h")
    assert left.evaluate("element => element.scrollWidth - element.clientWidth") == 0
