"""Validation of run requests and the memory estimate of a run."""

from typing import Any

import pytest
from pydantic import ValidationError

from backend.runs.runs.schemas import RunFields
from backend.specs.algorithms import AlgorithmConfig
from backend.specs.algorithms.memory import NETWORKS, VECTOR_NETWORKS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.problems import MAX_PROBLEMS, FieldProblem, InvalidSpec, problems_of
from backend.specs.run import REQUEST_FIELDS, parse_run_spec
from tests.support.algorithms import LEARNING

FOR_PIXELS = ", ".join(name for name in NETWORKS if name not in VECTOR_NETWORKS)
FOR_VECTORS = ", ".join(name for name in NETWORKS if name in VECTOR_NETWORKS)
PONG = {"algorithm": "paac", "environment": "ALE/Pong-v5", "stop": {"agent_steps": 1000}}


def problems(request: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidSpec) as refused:
        parse_run_spec(request)
    return {problem.field: problem.message for problem in refused.value.problems}


def test_parse_reports_every_invalid_field_in_one_error() -> None:
    messages = problems(
        {
            "algorithm": "paac",
            "environment": "ALE/Pong-v5",
            "config": {"n_e": 10**9, "gama": 0.9, "gamma": "two"},
            "environment_config": {"noop_max": -1},
            "seed": -1,
            "stop": {"agent_steps": 0},
            "device": "tpu",
        }
    )
    assert set(messages) == {
        "config.n_e",
        "config.gama",
        "config.gamma",
        "environment_config.noop_max",
        "seed",
        "stop.agent_steps",
        "device",
    }
    assert messages["config.gama"] == "no such field; did you mean gamma?"
    assert "512" in messages["config.n_e"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("environment", "os:system", "import code and are not allowed"),
        ("environment", "ALE/Poong-v5", "unknown environment"),
        ("environment", None, "is required"),
        ("environment", 0, "must be text, got 0"),
        ("algorithm", ["paac"], 'must be text, got ["paac"]'),
        ("algorithm", "none", 'unknown algorithm "none"; use one of paac, paac_q, ga3c, a3c, '),
        ("stop", {}, "at least one limit"),
        ("tags", "abc", 'must be a list, got "abc"'),
        ("tags", {"a": 1}, "must be a list"),
        ("seed", True, "must be an integer, got true"),
        ("name", "a\0b", 'must not contain null characters, got "a\\u0000b"'),
        ("learning_rate", 0.1, "no such field; did you mean config.learning_rate?"),
        ("agent_steps", 1, "no such field; did you mean stop.agent_steps?"),
        ("frame_skip", 1, "no such field; did you mean environment_config.frame_skip?"),
        ("preset", "x", "send the preset's settings, which GET /api/v1/algorithms lists"),
        ("tag", ["a"], "no such field; did you mean tags"),
        ("colour", "red", "no such field; use one of name, "),
        ("seedss", [1], "no such field; did you mean seeds or seed?"),
        ("config.gamma", 1, 'no such field; send {"config": {"gamma": …}}'),
        ("notes", None, "must be text, got null"),
    ],
)
def test_parse_rejects_unknown_or_unsafe_value(field: str, value: Any, message: str) -> None:
    assert message in problems(PONG | {field: value})[field]


def test_fields_that_messages_name_are_those_of_a_request() -> None:
    assert sorted(REQUEST_FIELDS) == sorted(RunFields.model_fields)


def test_spec_round_trips_through_json() -> None:
    spec = parse_run_spec(PONG | {"config": {"n_e": 4, "t_max": 7}, "tags": ["a"], "seed": 3})
    assert parse_run_spec(spec.model_dump(mode="json")) == spec


def test_memory_estimate_grows_with_every_memory_setting() -> None:
    def estimate(**config: Any) -> int:
        return parse_run_spec(PONG | {"config": {"n_e": 8, "n_w": 1, **config}}).memory_estimate_bytes

    base = estimate()
    for more in ({"n_e": 64}, {"n_w": 4}, {"t_max": 200}, {"evaluation_episodes": 60}):
        assert estimate(**more) > base, more
    assert estimate(evaluation_episodes=1_000) == estimate(evaluation_episodes=64)
    # Measured: 214 kB of activations for each decision of `nature`.
    assert estimate(t_max=1_000) - estimate(t_max=500) >= 8 * 500 * 214_000


@pytest.mark.parametrize(
    ("environment", "settings", "decisions"),
    [
        ("ALE/Pong-v5", {}, 27_000),
        ("ALE/Pong-v5", {"max_frames": 18_001}, 4_501),
        ("Labyrinth-Small-v0", {"episode_s": 10, "frame_skip": 4}, 88),
        ("Racing-Slow-v0", {"episode_s": 10, "frame_skip": 4}, 125),
        ("HalfCheetah-v5", {}, 1_000),
        ("HalfCheetah-v5", {"max_episode_agent_steps": 30_000}, 30_000),
        ("CartPole-v1", {}, 500),
    ],
)
def test_memory_estimate_of_an_update_per_episode_covers_the_longest_episode(
    environment: str, settings: dict[str, Any], decisions: int
) -> None:
    def estimate(t_max: int) -> int:
        request = {"algorithm": "a3c", "environment": environment, "stop": {"agent_steps": 1_000_000}}
        config = {"n_actors": 3, "t_max": t_max}
        spec = parse_run_spec(request | {"config": config, "environment_config": settings})
        return spec.memory_estimate_bytes

    of_one_decision = estimate(2) - estimate(1)
    assert estimate(0) == estimate(1) + (decisions - 1) * of_one_decision


def test_memory_estimate_of_ga3c_covers_dynamic_adjustment() -> None:
    def estimate(n_actors: int, every_s: float, agents_per_process: int = 1) -> int:
        config = {"n_actors": n_actors, "adjustment_interval_s": every_s}
        config |= {"agents_per_process": agents_per_process}
        return parse_run_spec(PONG | {"algorithm": "ga3c", "config": config}).memory_estimate_bytes

    assert estimate(1, 0.0) < estimate(32, 0.0) == estimate(1, 60.0) == estimate(32, 60.0)
    assert estimate(33, 60.0) == estimate(33, 0.0) > estimate(32, 60.0)
    assert estimate(9, 0.0, 1) > estimate(9, 0.0, 4) == estimate(9, 0.0, 3) > estimate(9, 0.0, 9)


def test_memory_estimate_of_dqn_covers_replay_filled_by_the_run() -> None:
    def estimate(agent_steps: int, **config: Any) -> int:
        request = {"algorithm": "dqn", "environment": "ALE/Pong-v5", "config": config}
        return parse_run_spec(request | {"stop": {"agent_steps": agent_steps}}).memory_estimate_bytes

    full = estimate(10**7, replay_capacity=10**6)
    assert full > 7_056 * 10**6
    # A frame of 84×84 bytes, and 10 bytes for action, reward and flags.
    assert full - estimate(10**7, replay_capacity=5 * 10**5) == 7_066 * 5 * 10**5
    assert full - estimate(5 * 10**5, replay_capacity=10**6) == 7_066 * 5 * 10**5
    # A checkpoint that stores the replay memory holds a copy of it for a moment.
    small = estimate(10**7, replay_capacity=100, learning_starts_agent_steps=100)
    stored = estimate(10**7, replay_capacity=10_100, learning_starts_agent_steps=100)
    assert stored - small == 2 * 7_066 * 10_000


@pytest.mark.parametrize("algorithm", LEARNING)
def test_memory_estimate_covers_the_environments_of_random_play(algorithm: str) -> None:
    def estimate(**config: Any) -> int:
        request = PONG | {"algorithm": algorithm, "config": {"evaluation_episodes": 2, **config}}
        return parse_run_spec(request).memory_estimate_bytes

    environments = 8 * ENVIRONMENTS["ALE/Pong-v5"].memory_bytes
    assert estimate(centre=True) - estimate() >= environments * 6 // 8
    assert estimate(centre=True) == estimate(centre=True, evaluation_episodes=8)


def test_memory_estimate_is_declared_by_each_algorithm_whatever_its_settings_are_called() -> None:
    class Undeclared(AlgorithmConfig):
        n_players: int = 64

    with pytest.raises(TypeError, match=r"env_processes.*training_bytes"):
        Undeclared()  # type: ignore[abstract]


@pytest.mark.parametrize(
    ("algorithm", "changes", "field", "message"),
    [
        (
            "a3c",
            {"config": {"network": "mlp"}},
            "config.network",
            f"use one of {FOR_PIXELS}, large",
        ),
        (
            "ga3c",
            {"config": {"network": "mlp"}},
            "config.network",
            "use one of nips, nature, large",
        ),
        (
            "dqn",
            {"environment": "CartPole-v1", "config": {"network": "nips"}},
            "config.network",
            FOR_VECTORS,
        ),
        (
            "gorila_dqn",
            {"environment_config": {"observation_size": "42x42"}},
            "environment_config.observation_size",
            "nature takes observations of 84x84",
        ),
        (
            "dqn",
            {"environment": "CartPole-v1", "config": {"centre": True}},
            "config.centre",
            "vector observations: only pixels are centred",
        ),
        ("paac", {"config": {"centre": True, "standardise": True}}, "config.centre", "set one of them"),
        ("a3c", {"config": {"centre": True, "standardise": True}}, "config.centre", "set one of them"),
        ("n_step_q", {"stop": {"wall_time_s": 5}}, "stop.agent_steps", "linear learning rate schedule"),
        (
            "ga3c",
            {"stop": {"score": 5}, "config": {"learning_rate_schedule": "linear"}},
            "stop.agent_steps",
            "linear learning rate schedule",
        ),
    ],
)
def test_parse_rejects_settings_that_do_not_fit_the_rest_of_the_run(
    algorithm: str, changes: dict[str, Any], field: str, message: str
) -> None:
    [(wrong_field, text)] = problems(PONG | {"algorithm": algorithm} | changes).items()
    assert wrong_field == field
    assert message in text


def test_environment_defaults_override_algorithm_defaults_but_not_request() -> None:
    request = {"algorithm": "paac", "environment": "Labyrinth-Small-v0", "stop": {"agent_steps": 1}}
    assert parse_run_spec(request).config.model_dump()["reward_clip"] == 0.0
    overridden = request | {"config": {"reward_clip": 5.0}}
    assert parse_run_spec(overridden).config.model_dump()["reward_clip"] == 5.0
    pong = request | {"environment": "ALE/Pong-v5"}
    assert parse_run_spec(pong).config.model_dump()["reward_clip"] == 1.0


def test_parse_rejects_long_tag_with_readable_message() -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse_run_spec(PONG | {"tags": ["x" * 51]})
    [problem] = caught.value.problems
    assert problem.field == "tags.0"
    assert problem.message == "must have at most 50 characters, has 51"


def test_parse_rejects_discrete_algorithm_in_continuous_environment() -> None:
    request = {"algorithm": "paac", "environment": "Pendulum-v1", "stop": {"agent_steps": 1}}
    with pytest.raises(InvalidSpec) as caught:
        parse_run_spec(request)
    [problem] = caught.value.problems
    assert problem.field == "environment"
    assert problem.message == "PAAC supports discrete actions, not continuous"
    assert parse_run_spec(request | {"algorithm": "a3c"}).catalogue_environment.actions == "continuous"


@pytest.mark.parametrize(
    ("section", "name", "meant"),
    [
        ("config", "agent_steps", "stop.agent_steps"),
        ("config", "seed", "seed"),
        ("environment_config", "n_e", "config.n_e"),
        ("stop", "gamma", "config.gamma"),
        ("config", "stop", "stop"),
        ("config", "stop.agent_steps", "stop.agent_steps"),
        ("stop", "config.gamma", "config.gamma"),
        ("stop", "stop.score", "score"),
    ],
)
def test_setting_in_the_wrong_section_is_answered_with_the_right_one(
    section: str, name: str, meant: str
) -> None:
    request = {"algorithm": "paac", "environment": "CartPole-v1", "stop": {"agent_steps": 1}}
    with pytest.raises(InvalidSpec) as raised:
        parse_run_spec(request | {section: {name: 1, **request.get(section, {})}})  # type: ignore[dict-item]
    messages = {problem.field: problem.message for problem in raised.value.problems}
    assert messages[f"{section}.{name}"] == f"no such field; did you mean {meant}?"


def test_section_inside_itself_is_not_what_is_meant() -> None:
    message = problems(PONG | {"stop": {"stop": {"agent_steps": 1}}})["stop.stop"]
    assert message == "no such field; use one of agent_steps, wall_time_s, score"


def test_of_thousands_of_unknown_fields_few_are_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    n_errors = []

    def counted(error: ValidationError, prefix: str = "") -> list[FieldProblem]:
        n_errors.append(error.error_count())
        return problems_of(error, prefix)

    monkeypatch.setattr("backend.specs.run.problems_of", counted)
    config = {f"x{n}": n for n in range(3_000)} | {"n_e": 10**9}
    assert list(problems(PONG | {"config": config}))[:2] == ["config.n_e", "config.x0"]
    assert max(n_errors) <= MAX_PROBLEMS + 1
