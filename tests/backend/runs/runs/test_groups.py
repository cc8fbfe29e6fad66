from collections import Counter
from typing import Any

import pytest

from backend.db import Run
from backend.runs.runs.external_spec import ExternalFields, external_spec
from backend.runs.runs.groups import (
    evaluation_key,
    group_key,
    human_reference,
    surplus_runs,
)
from backend.specs.departures import with_change, with_simulator
from backend.specs.environments import ENVIRONMENTS
from backend.specs.run import parse_run_spec
from tests.support.rows import CARTPOLE, external_request


def run(**changes: Any) -> Run:
    spec = parse_run_spec(CARTPOLE | changes)
    return Run(
        algorithm=spec.algorithm,
        environment=spec.environment,
        group=spec.group,
        spec=spec.model_dump(mode="json"),
    )


def test_project_does_not_separate_seeds() -> None:
    assert group_key(run(project="atari", seed=1)) == group_key(run(seed=2))


def annealed(agent_steps: int, **changes: Any) -> Run:
    return run(stop={"agent_steps": agent_steps}, config={"learning_rate_schedule": "linear"}, **changes)


def test_runs_of_other_limits_are_of_one_group_unless_their_learning_rates_then_differ() -> None:
    constant = [run(stop={"agent_steps": steps}) for steps in (3_000, 6_000)]
    assert len({group_key(run) for run in constant}) == 1
    linear = [annealed(3_000), annealed(6_000), annealed(6_000, annealing_agent_steps=3_000)]
    keys = [group_key(run) for run in linear]
    assert keys[0] == keys[2] != keys[1]
    assert surplus_runs(linear, numbered(linear, (3_000, 6_000, 6_000))) == {"0": "2"}


PONG: dict[str, Any] = {"environment": "ALE/Pong-v5"}


def test_human_normalised_score_is_that_of_the_protocol() -> None:
    # Nair et al. 2015, null-op starts: random -20.7, human 9.3, and DQN 18.9, normalised to 132.
    nair = human_reference(run(**PONG), "noop_starts_5min")
    assert nair is not None
    assert nair.normalised_pct(18.9) == pytest.approx(132)
    assert nair.normalised_pct(-20.7) == 0
    # DQN Zoo, no-op starts of at most 30 minutes: random -20.7, human 14.6.
    longer = human_reference(run(**PONG), "noop_starts")
    assert longer is not None
    assert {longer.random.protocol, longer.human.protocol} == {"noop_starts"}
    assert longer.normalised_pct(14.6) == pytest.approx(100)


def test_every_score_is_normalised_by_references_of_its_own_protocol() -> None:
    references = Counter(
        protocol
        for environment in ENVIRONMENTS.values()
        for protocol in {score.protocol for score in environment.published}
        if (reference := human_reference(run(environment=environment.id), protocol)) is not None
        and {reference.random.protocol, reference.human.protocol} == {protocol}
    )
    # From human starts the person of Nair et al. 2015 is below the random agent in Video Pinball.
    assert references == {"noop_starts": 57, "noop_starts_5min": 49, "human_starts": 48}


@pytest.mark.parametrize(
    ("changes", "protocol"),
    [
        (PONG, "random_seeds"),
        (PONG, "sticky_actions_30min"),
        (PONG, "noop_starts_5min_greedy"),
        (PONG, "noop_starts_9000_frames"),
        (PONG | {"environment_config": {"crop": True}}, "noop_starts_5min"),
        ({"environment": "ALE/Atlantis2-v5"}, "noop_starts_5min"),
        ({}, "plain"),
    ],
)
def test_score_measured_in_another_way_has_no_human_normalised_value(
    changes: dict[str, Any], protocol: str
) -> None:
    assert human_reference(run(**changes), protocol) is None


def test_random_agent_at_10_hz_is_compared_and_normalised_as_any_agent() -> None:
    """It observes nothing: its action repeat and what it does not see are its own affair, its actions not."""
    agents = {"algorithm": "random", **PONG}
    at_10_hz = run(**agents, environment_config={"frame_skip": 6, "observation_size": "42x42"})
    reference = human_reference(at_10_hz, "noop_starts_5min")
    assert reference == human_reference(run(**PONG), "noop_starts_5min")
    keys = {evaluation_key(of, "noop_starts_5min") for of in (at_10_hz, run(**agents), run(**PONG))}
    assert len(keys) == 1
    assert group_key(at_10_hz) != group_key(run(**agents))
    assert human_reference(run(**PONG, environment_config={"frame_skip": 6}), "noop_starts_5min") is None
    full = run(**agents, environment_config={"full_action_set": True})
    assert human_reference(full, "noop_starts_5min") is None


def test_scores_are_comparable_whatever_the_order_of_the_stored_settings() -> None:
    """PostgreSQL stores the settings of an environment that is not known here in an order of its own."""
    runs = [run(), run(environment="ALE/Pong-v5")]
    for created, settings in zip(runs, ({"width": 3, "depth": 5}, {"depth": 5, "width": 3}), strict=True):
        created.environment = "Custom/Gone-v0"
        created.spec = created.spec | {"environment": created.environment, "environment_config": settings}
    assert evaluation_key(runs[0], "plain") == evaluation_key(runs[1], "plain")
    runs[1].spec = runs[1].spec | {"environment_config": {"depth": 3, "width": 5}}
    assert evaluation_key(runs[0], "plain") != evaluation_key(runs[1], "plain")


def numbered(runs: list[Run], agent_steps: tuple[int, ...]) -> dict[str, str]:
    """Name the runs 0, 1, ... and return the roots of runs without forks."""
    for at, (member, steps) in enumerate(zip(runs, agent_steps, strict=True)):
        member.id, member.origin, member.seed, member.agent_steps = (
            f"{at}",
            "callboard",
            member.spec["seed"],
            steps,
        )
    return {run.id: run.id for run in runs}


def test_runs_of_one_seed_of_a_deterministic_method_are_one_sample() -> None:
    runs = [run(seed=seed) for seed in (0, 0, 0, 1)] + [run(seed=0, config={"n_e": 8})]
    roots = numbered(runs, (500, 900, 900, 100, 100))
    assert surplus_runs(runs, roots) == {"0": "2", "1": "2"}, "the furthest counts, of equals the latest"
    runs[0].score = 1.0
    assert surplus_runs(runs, roots) == {"1": "0", "2": "0"}, (
        "one with a score counts rather than one without"
    )
    assert surplus_runs(runs, roots, ["1"]) == {"0": "1", "2": "1"}, "that score may be another"
    for member in runs:
        member.algorithm = "a3c"  # actors race: two runs of one seed differ
    assert surplus_runs(runs, roots) == {}


@pytest.mark.parametrize("algorithm", ["paac", "a3c"])
def test_a_run_and_its_forks_are_one_sample_whatever_method_and_seed(algorithm: str) -> None:
    shared = {"algorithm": algorithm}
    runs = [run(seed=seed, **shared) for seed in range(5)] + [run(seed=9, config={"gamma": 0.9}, **shared)]
    roots = numbered(runs, (100, 300, 200, 50, 50, 400))
    # 1 and 2 are forks of 0, and 4 is a fork of a run that is not among these; 5 has other settings.
    roots |= {"1": "0", "2": "0", "4": "x", "5": "0"}
    assert surplus_runs(runs, roots) == {"0": "1", "2": "1"}
    assert surplus_runs(runs[2:], roots | {"3": "x"}) == {"3": "4"}, "two forks whose parent is not shown"


def test_run_that_departs_from_its_settings_is_in_a_group_of_its_own() -> None:
    settings = {"learning_rate": 0.0005}
    plain, changed, again = (run(seed=seed, config=settings) for seed in range(3))
    changed.departures = with_change({}, "learning_rate", 0.003, 0.0005, 234_100)
    again.departures = with_change({}, "learning_rate", 0.003, 0.0005, 234_100)
    assert group_key(changed) == group_key(again) != group_key(plain)
    twice = with_change(changed.departures, "learning_rate", 0.0005, 0.0001, 1_500_000)
    assert twice == {"learning_rate": "0.003 → 0.0005 at 234k → 0.0001 at 1.5M"}
    assert with_change({}, "learning_rate", 0.003, 0.0005, 0) == {}, "it has trained with nothing else"


def test_runs_of_two_major_versions_of_the_simulator_are_no_seeds_of_each_other() -> None:
    def trained(departures: dict[str, Any], version: str, agent_steps: int = 0) -> dict[str, Any]:
        return with_simulator(departures, "mujoco", {"mujoco": version}, agent_steps)

    assert trained({}, "4.0.0") == trained({}, "4.1.0") == {}
    old = trained({}, "3.3.7")
    assert old == trained(old, "3.5.0", 7_000) == {"MuJoCo": "3"}
    assert trained(old, "4.0.0", 7_000) == {"MuJoCo": "3 → 4 at 7k"}
    assert trained({"MuJoCo": "3 → 4 at 7k"}, "4.0.0", 9_000) == {"MuJoCo": "3 → 4 at 7k"}
    assert with_simulator({}, "atari", {"mujoco": "3.3.7"}, 0) == {}
    rows = [run(algorithm="a3c", environment="Hopper-v5") for _ in range(2)]
    rows[1].departures = old
    assert group_key(rows[0]) != group_key(rows[1])


def external(run_id: str, **fields: Any) -> Run:
    spec = external_spec(ExternalFields.model_validate({**external_request(), "seed": None} | fields))
    return Run(
        id=run_id,
        name=run_id,
        origin="external",
        algorithm=spec["algorithm"],
        environment=spec["environment"],
        spec=spec,
    )


def test_runs_of_unknown_algorithm_or_seed_are_no_seeds_of_each_other() -> None:
    unknown = [external("A2C_1"), external("PPO_1")]
    assert group_key(unknown[0]) != group_key(unknown[1])
    unnamed = [external(name, algorithm="unknown", seed=seed) for seed, name in enumerate("ab")]
    assert group_key(unnamed[0]) != group_key(unnamed[1])
    known = [external(name, seed=seed) for seed, name in enumerate("ab")]
    assert group_key(known[0]) == group_key(known[1])
