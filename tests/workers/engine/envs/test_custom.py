"""Environments of a host's owner: from the file to training, and what becomes of broken ones."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.specs.environments.custom import (
    FILE_VARIABLE,
    CustomConfig,
    CustomEnvironmentsError,
    read_custom_environments,
)
from backend.specs.events import AnyEvent, EvaluationEvent, LogEvent
from backend.specs.problems import InvalidSpec
from backend.specs.run import parse_run_spec
from tests.support import custom_environment
from tests.support.packages import Site
from workers import host_facts
from workers.engine.envs import Box, EnvCrashedError, make_env
from workers.engine.training.loop import Training


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = custom_environment.write(tmp_path)
    monkeypatch.setenv(FILE_VARIABLE, str(path))
    return path


def request(file: Path) -> dict[str, Any]:
    return {
        "algorithm": "paac",
        "environment": "Custom/Line-v0",
        "custom": read_custom_environments(file)["Custom/Line-v0"].describe().model_dump(mode="json"),
        "config": {"n_e": 2, "n_w": 1, "evaluation_episodes": 3},
        "environment_config": {"max_episode_agent_steps": 30},
        "stop": {"agent_steps": 400},
    }


@pytest.mark.service
def test_run_trains_and_evaluates_in_a_custom_environment(file: Path, tmp_path: Path) -> None:
    spec = parse_run_spec(request(file))
    assert parse_run_spec(spec.model_dump(mode="json")) == spec
    said: list[AnyEvent] = []
    assert Training(spec, tmp_path / "run", on_event=said.append).run().state == "finished"
    [score] = [event for event in said if isinstance(event, EvaluationEvent)]
    assert score.protocol == "plain"
    assert set(score.returns) <= {0.0, 1.0}


@pytest.mark.service
def test_evaluation_prints_its_result_alone_though_the_environment_prints(file: Path, tmp_path: Path) -> None:
    spec = parse_run_spec(request(file))
    folder = tmp_path / "run"
    Training(spec, folder).run()
    (folder / "spec.json").write_text(spec.model_dump_json())
    checkpoint = next((folder / "checkpoints").iterdir())
    command = [sys.executable, "-m", "workers.engine", "evaluate", str(folder)]
    command += ["--checkpoint", str(checkpoint), "--episodes", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout)["returns"]) == 2
    assert "reset to" in done.stderr


def test_custom_environment_resizes_observations_and_clips_actions() -> None:
    env = make_env("Custom/Frames-v1", CustomConfig())
    assert env.action_space == Box((-1.0, -1.0), (1.0, 1.0))
    observation = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(0, observation)
    assert observation.shape == (84, 84, 3)
    assert (observation == 200).all()
    assert env.step(np.array([5.0, 0.5], np.float32), observation).reward == 1.5


def test_crash_loses_one_episode_with_a_warning(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[AnyEvent] = []

    def listen(event: AnyEvent) -> None:
        said.append(event)
        monkeypatch.setattr(custom_environment.Line, "broken", False)

    original = custom_environment.Line.step

    def breaks_once(
        self: custom_environment.Line, action: Any
    ) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not any(isinstance(event, LogEvent) and event.level == "warning" for event in said):
            raise ZeroDivisionError("the line is broken")
        return original(self, action)

    monkeypatch.setattr(custom_environment.Line, "step", breaks_once)
    settings = request(file) | {"config": {"n_e": 2, "n_w": 1, "t_max": 1, "evaluation_episodes": 0}}
    assert Training(parse_run_spec(settings), tmp_path / "run", on_event=listen).run().state == "finished"
    warnings = [event.message for event in said if isinstance(event, LogEvent) and event.level == "warning"]
    assert 1 <= len(warnings) <= 2
    assert "crashed" in warnings[0]
    assert "ZeroDivisionError('the line is broken')" in warnings[0]


def test_repeated_crashes_raise_the_environments_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom_environment.Line, "broken", True)
    env = make_env("Custom/Line-v0", CustomConfig())
    observation = np.empty(1, np.float32)
    for _ in range(2):
        env.reset(0, observation)
        assert env.step(0, observation).crashed
    env.reset(0, observation)
    with pytest.raises(EnvCrashedError, match="the line is broken"):
        env.step(0, observation)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_observation_that_is_not_finite_is_named_and_never_reaches_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env = make_env("Custom/Line-v0", CustomConfig())
    observation = np.empty(1, np.float32)
    monkeypatch.setattr(custom_environment.Line, "step", _not_finite)
    for _ in range(2):
        env.reset(0, observation)
        assert env.step(0, observation).crashed
        assert np.isfinite(observation).all()
    env.reset(0, observation)
    with pytest.raises(EnvCrashedError, match=r"Custom/Line-v0: observation\[0\] is inf"):
        env.step(0, observation)


def _not_finite(self: custom_environment.Line, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    return np.array([np.inf]), 0.0, False, False, {}


def _breaks(self: custom_environment.Line, **given: object) -> None:
    raise ZeroDivisionError("there is no line")


def test_crash_in_reset_loses_one_episode_and_closes_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[custom_environment.Line] = []
    monkeypatch.setattr(custom_environment.Line, "close", lambda self: closed.append(self))
    env = make_env("Custom/Line-v0", CustomConfig())
    observation = np.empty(1, np.float32)
    with monkeypatch.context() as broken:
        broken.setattr(custom_environment.Line, "reset", _breaks)
        env.reset(0, observation)
    assert env.step(0, observation).crashed
    assert closed == []
    env.reset(1, observation)
    assert len(closed) == 1
    assert not env.step(0, observation).crashed


def test_failing_constructor_raises_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom_environment.Line, "reset", _breaks)
    env = make_env("Custom/Line-v0", CustomConfig())
    observation = np.empty(1, np.float32)
    for _ in range(2):
        env.reset(0, observation)
        assert env.step(0, observation).crashed
    env.reset(0, observation)
    with pytest.raises(EnvCrashedError, match="there is no line"):
        env.step(0, observation)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "Line"\n', "", r"Custom/Line-v0\.title: is required"),
        ('observation = "vector"', 'observation = "smell"', r"Custom/Line-v0\.observation: must be"),
        ("Custom/Line-v0", "Line-v0", r"Line-v0\.id: must be Custom/, up to"),
        (
            "tests.support.custom_environment:Line",
            "os.system",
            r"Custom/Line-v0\.entry_point: must be a module and a class",
        ),
        ("kwargs", "arguments", r"Custom/Line-v0\.arguments: no such field; use one of id, "),
        (custom_environment.FILE, "x = 5", r"environments\.toml: x: must be a table"),
        ("title", "title =", r"environments\.toml: Invalid value"),
    ],
)
def test_invalid_environments_file_is_refused_naming_the_field(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    path = custom_environment.write(tmp_path, custom_environment.FILE.replace(old, new, 1))
    with pytest.raises(CustomEnvironmentsError, match=said):
        read_custom_environments(path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('["LEFT", "RIGHT"]', '["LEFT"]', r"Custom/Line-v0\.action_names: 1 names for 2"),
        ('"discrete"', '"continuous"', r"Custom/Line-v0\.actions: continuous, but"),
        ('observation = "vector"', 'observation = "pixels"', r"Custom/Line-v0\.observation: pixels, but"),
        ("Custom/Line-v0", "Custom/Other-v0", r"Custom/Line-v0: not in"),
    ],
)
def test_description_that_differs_from_the_environment_is_refused(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    custom_environment.write(tmp_path, custom_environment.FILE.replace(old, new, 1))
    with pytest.raises(CustomEnvironmentsError, match=said):
        make_env("Custom/Line-v0", CustomConfig())


def test_make_env_raises_without_an_environments_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FILE_VARIABLE)
    with pytest.raises(CustomEnvironmentsError, match="has no custom environments"):
        make_env("Custom/Line-v0", CustomConfig())


def test_environment_of_a_distribution_is_built_without_an_environments_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(FILE_VARIABLE)
    monkeypatch.syspath_prepend(str(tmp_path))
    Site(tmp_path).install_environment("lines-to-walk", environment="Custom/Walk-v0")
    env = make_env("Custom/Walk-v0", CustomConfig())
    assert env.action_names == ("LEFT", "RIGHT")
    with pytest.raises(CustomEnvironmentsError, match="this host has Custom/Walk-v0"):
        make_env("Custom/Line-v0", CustomConfig())


@pytest.mark.parametrize(
    "changes",
    [{"custom": None}, {"environment": "Custom/Other-v0"}, {"environment": "CartPole-v1"}],
)
def test_description_matches_its_environment(file: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse_run_spec(request(file) | changes)
    assert {problem.field for problem in caught.value.problems} <= {
        "environment",
        "custom",
        "environment_config",
    }


@pytest.mark.service
def test_unsuitable_environments_are_refused_in_one_line_and_modules_beside_the_file_are_found(
    tmp_path: Path,
) -> None:
    path = custom_environment.write(tmp_path, custom_environment.UNSUITABLE)
    (tmp_path / "beside_the_file.py").write_text(custom_environment.BESIDE_THE_FILE)
    refused = host_facts.refused_environments(path, list(read_custom_environments(path)))
    assert {name: reason.split(":")[0] for name, reason in refused.items()} == {
        "Custom/Dict-v0": "Custom/Dict-v0",
        "Custom/Multi-v0": "Custom/Multi-v0",
        "Custom/NaN-v0": "Custom/NaN-v0",
        "Custom/Step-v0": "KeyError",
        "Custom/Render-v0": "Custom/Render-v0",
        "Custom/Missing-v0": "ModuleNotFoundError",
    }
    assert "observation space Dict('position'" in refused["Custom/Dict-v0"]
    assert "action space MultiDiscrete([2 2]) is not supported" in refused["Custom/Multi-v0"]
    assert "observation[2] is nan in the reset" in refused["Custom/NaN-v0"]
    assert "render returned an array of shape (20, 40)" in refused["Custom/Render-v0"]
    assert not any("\n" in reason for reason in refused.values())


@pytest.mark.service
def test_environment_that_ends_the_process_is_refused_and_the_others_are_tried(tmp_path: Path) -> None:
    ending = custom_environment.FILE.replace("tests.support.custom_environment:Frames", "beside_the_file:Any")
    path = custom_environment.write(tmp_path, ending + custom_environment.UNSUITABLE)
    (tmp_path / "beside_the_file.py").write_text("import os\nprint('[1', end='', flush=True)\nos._exit(3)\n")
    refused = host_facts.refused_environments(path, list(read_custom_environments(path)))
    assert set(read_custom_environments(path)) - set(refused) == {"Custom/Line-v0"}
    ended = {name for name, reason in refused.items() if "ended the process with exit code 3" in reason}
    assert set(refused) - ended == {"Custom/Missing-v0"}
