"""Environments of a host's owner: from the file to training, and what becomes of broken ones."""

from pathlib import Path

import numpy as np
import pytest

from backend.specs.environments.own import FILE_VARIABLE, OwnConfig, OwnWorldsError, read_own
from backend.specs.events import AnyEvent, Evaluation, Log
from backend.specs.run import InvalidSpec, parse_run_spec
from tests.support import own_world
from workers.engine.envs import Box, WorldCrashedError, make_world
from workers.engine.training import Training


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = own_world.write(tmp_path)
    monkeypatch.setenv(FILE_VARIABLE, str(path))
    return path


def request(file: Path) -> dict:
    return {
        "algorithm": "paac",
        "environment": "Own/Line-v0",
        "own": read_own(file)["Own/Line-v0"].described().model_dump(mode="json"),
        "config": {"n_e": 2, "n_w": 1, "evaluation_episodes": 3},
        "environment_config": {"max_episode_agent_steps": 30},
        "stop": {"agent_steps": 400},
    }


def test_a_run_trains_and_is_scored_there(file: Path, tmp_path: Path) -> None:
    spec = parse_run_spec(request(file))
    assert parse_run_spec(spec.model_dump(mode="json")) == spec
    said: list[AnyEvent] = []
    assert Training(spec, tmp_path / "run", on_event=said.append).run().state == "finished"
    [score] = [event for event in said if isinstance(event, Evaluation)]
    assert score.protocol == "plain"
    assert set(score.returns) <= {0.0, 1.0}


def test_pictures_are_brought_to_84_pixels_and_actions_within_bounds() -> None:
    world = make_world("Own/Pictures-v1", OwnConfig())
    assert world.action_space == Box((-1.0, -1.0), (1.0, 1.0))
    observation = np.empty(world.observation_shape, world.observation_dtype)
    world.reset(0, observation)
    assert observation.shape == (84, 84, 3)
    assert (observation == 200).all()
    assert world.step(np.array([5.0, 0.5], np.float32), observation).reward == 1.5


def test_a_broken_one_is_a_lost_episode_and_a_warning(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[AnyEvent] = []

    def listen(event: AnyEvent) -> None:
        said.append(event)
        monkeypatch.setattr(own_world.Line, "broken", False)

    original = own_world.Line.step

    def breaks_once(self, action):
        if not any(isinstance(event, Log) and event.level == "warning" for event in said):
            raise ZeroDivisionError("the line is broken")
        return original(self, action)

    monkeypatch.setattr(own_world.Line, "step", breaks_once)
    settings = request(file) | {"config": {"n_e": 2, "n_w": 1, "t_max": 1, "evaluation_episodes": 0}}
    assert Training(parse_run_spec(settings), tmp_path / "run", on_event=listen).run().state == "finished"
    warnings = [event.message for event in said if isinstance(event, Log) and event.level == "warning"]
    assert 1 <= len(warnings) <= 2
    assert "broke" in warnings[0]


def test_one_that_breaks_again_and_again_ends_in_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_world.Line, "broken", True)
    world = make_world("Own/Line-v0", OwnConfig())
    observation = np.empty(1, np.float32)
    for _ in range(2):
        world.reset(0, observation)
        assert world.step(0, observation).crashed
    world.reset(0, observation)
    with pytest.raises(WorldCrashedError, match="the line is broken"):
        world.step(0, observation)


def _breaks(self: own_world.Line, **given: object) -> None:
    raise ZeroDivisionError("there is no line")


def test_one_that_breaks_as_it_begins_is_a_lost_episode_and_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[own_world.Line] = []
    monkeypatch.setattr(own_world.Line, "close", lambda self: closed.append(self))
    world = make_world("Own/Line-v0", OwnConfig())
    observation = np.empty(1, np.float32)
    with monkeypatch.context() as broken:
        broken.setattr(own_world.Line, "reset", _breaks)
        world.reset(0, observation)
    assert world.step(0, observation).crashed
    assert closed == []
    world.reset(1, observation)
    assert len(closed) == 1
    assert not world.step(0, observation).crashed


def test_one_that_never_begins_ends_in_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_world.Line, "reset", _breaks)
    world = make_world("Own/Line-v0", OwnConfig())
    observation = np.empty(1, np.float32)
    for _ in range(2):
        world.reset(0, observation)
        assert world.step(0, observation).crashed
    world.reset(0, observation)
    with pytest.raises(WorldCrashedError, match="there is no line"):
        world.step(0, observation)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "Line"\n', "", r"Own/Line-v0\.title: Field required"),
        ('observation = "vector"', 'observation = "smell"', r"Own/Line-v0\.observation: Input should be"),
        ("Own/Line-v0", "Line-v0", r"Line-v0\.id: String should match"),
        ("tests.support.own_world:Line", "os.system", r"Own/Line-v0\.entry_point: String should match"),
        ("kwargs", "arguments", r"Own/Line-v0\.arguments: Extra inputs"),
        ("title", "title =", r"environments\.toml: Invalid value"),
    ],
)
def test_a_wrong_file_is_refused_naming_the_field(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = own_world.write(tmp_path, own_world.FILE.replace(old, new, 1))
    with pytest.raises(OwnWorldsError, match=said):
        read_own(path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('["LEFT", "RIGHT"]', '["LEFT"]', r"Own/Line-v0\.action_names: 1 names of 2"),
        ('"discrete"', '"continuous"', r"Own/Line-v0\.actions: continuous, but"),
        ('observation = "vector"', 'observation = "pixels"', r"Own/Line-v0\.observation: pixels, but"),
        ("Own/Line-v0", "Own/Other-v0", r"Own/Line-v0: not in"),
    ],
)
def test_a_file_that_does_not_tell_the_truth_is_refused(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    own_world.write(tmp_path, own_world.FILE.replace(old, new, 1))
    with pytest.raises(OwnWorldsError, match=said):
        make_world("Own/Line-v0", OwnConfig())


def test_no_world_is_made_where_no_file_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FILE_VARIABLE)
    with pytest.raises(OwnWorldsError, match="has no worlds of its own"):
        make_world("Own/Line-v0", OwnConfig())


@pytest.mark.parametrize(
    "changes",
    [{"own": None}, {"environment": "Own/Other-v0"}, {"environment": "CartPole-v1"}],
)
def test_a_description_fits_its_world(file: Path, changes: dict) -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse_run_spec(request(file) | changes)
    assert {problem.field for problem in caught.value.problems} <= {
        "environment",
        "own",
        "environment_config",
    }
