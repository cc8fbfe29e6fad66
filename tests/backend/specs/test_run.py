"""What one may ask for: known, bounded, and of a size that a host can judge."""

from typing import Any

import pytest

from backend.specs.run import InvalidSpec, parse_run_spec

PONG = {"algorithm": "paac", "environment": "ALE/Pong-v5", "stop": {"agent_steps": 1000}}


def problems(request: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidSpec) as refused:
        parse_run_spec(request)
    return {problem.field: problem.message for problem in refused.value.problems}


def test_every_field_at_fault_is_named_at_once() -> None:
    found = problems(
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
    assert set(found) == {
        "config.n_e",
        "config.gama",
        "config.gamma",
        "environment_config.noop_max",
        "seed",
        "stop.agent_steps",
        "device",
    }
    assert found["config.gama"] == "no such setting"
    assert "512" in found["config.n_e"]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("environment", "os:system", "runs code and is refused"),
        ("environment", "ALE/Poong-v5", "unknown environment"),
        ("environment", None, "field required"),
        ("algorithm", "ppo", "unknown algorithm"),
        ("stop", {}, "at least one bound"),
    ],
)
def test_what_is_unknown_or_unsafe_is_refused(field: str, value: Any, said: str) -> None:
    assert said in problems(PONG | {field: value})[field]


def test_a_spec_comes_back_from_its_json() -> None:
    spec = parse_run_spec(PONG | {"config": {"n_e": 4, "t_max": 7}, "tags": ["a"], "seed": 3})
    assert parse_run_spec(spec.model_dump(mode="json")) == spec


def test_the_memory_estimate_grows_with_all_that_takes_memory() -> None:
    def estimate(**config: Any) -> int:
        return parse_run_spec(PONG | {"config": {"n_e": 8, "n_w": 1, **config}}).memory_estimate_bytes

    base = estimate()
    for more in ({"n_e": 64}, {"n_w": 4}, {"t_max": 200}, {"evaluation_episodes": 60}):
        assert estimate(**more) > base, more
    assert estimate(evaluation_episodes=1_000) == estimate(evaluation_episodes=64)
    # 214 kB of activations were seen for each decision of `nature`.
    assert estimate(t_max=1_000) - estimate(t_max=500) >= 8 * 500 * 214_000


def test_the_memory_estimate_holds_all_agents_that_ga3c_may_come_to() -> None:
    def estimate(n_actors: int, every_s: float) -> int:
        config = {"n_actors": n_actors, "adjustment_interval_s": every_s}
        return parse_run_spec(PONG | {"algorithm": "ga3c", "config": config}).memory_estimate_bytes

    assert estimate(1, 0.0) < estimate(32, 0.0) == estimate(1, 60.0) == estimate(32, 60.0)
    assert estimate(33, 60.0) == estimate(33, 0.0) > estimate(32, 60.0)


def test_the_memory_estimate_holds_a_replay_as_full_as_the_run_can_make_it() -> None:
    def estimate(agent_steps: int, **config: Any) -> int:
        asked = {"algorithm": "dqn", "environment": "ALE/Pong-v5", "config": config}
        return parse_run_spec(asked | {"stop": {"agent_steps": agent_steps}}).memory_estimate_bytes

    full = estimate(10**7, replay_capacity=10**6)
    assert full > 7_056 * 10**6
    assert full - estimate(10**7, replay_capacity=10**5) == 7_056 * 9 * 10**5
    assert full - estimate(10**5, replay_capacity=10**6) == 7_056 * 9 * 10**5


def test_a_worlds_own_defaults_stand_between_the_algorithms_and_what_is_asked() -> None:
    request = {"algorithm": "paac", "environment": "Labyrinth-Small-v0", "stop": {"agent_steps": 1}}
    assert parse_run_spec(request).config.model_dump()["reward_clip"] == 0.0
    asked = request | {"config": {"reward_clip": 5.0}}
    assert parse_run_spec(asked).config.model_dump()["reward_clip"] == 5.0
    pong = request | {"environment": "ALE/Pong-v5"}
    assert parse_run_spec(pong).config.model_dump()["reward_clip"] == 1.0


def test_a_long_tag_is_refused_in_plain_words() -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse_run_spec(PONG | {"tags": ["x" * 51]})
    [problem] = caught.value.problems
    assert problem.field == "tags.0"
    assert problem.message.startswith("must have at most 50 characters, got 'xxx")


def test_an_algorithm_without_continuous_actions_is_refused_where_they_are_needed() -> None:
    request = {"algorithm": "paac", "environment": "Pendulum-v1", "stop": {"agent_steps": 1}}
    with pytest.raises(InvalidSpec) as caught:
        parse_run_spec(request)
    [problem] = caught.value.problems
    assert problem.field == "environment"
    assert problem.message == "PAAC chooses discrete actions, not continuous"
    assert parse_run_spec(request | {"algorithm": "a3c"}).world.actions == "continuous"
