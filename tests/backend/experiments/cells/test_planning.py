from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from backend.experiments.cells.planning import Limits, Member, Plan, plan
from backend.experiments.specs.sweep import SweepSpec
from backend.specs.states import RunState


def spec(**changes: Any) -> SweepSpec:
    values = {"name": "s", "run": {}, "space": {"config.gamma": {"values": [0.9]}}, "max_seeds": 4}
    return SweepSpec.model_validate(values | changes)


def limits_of(spec: SweepSpec) -> Limits:
    return Limits(spec.max_seeds, spec.racing, spec.budget, spec.concurrency)


def done(configuration: int, seed: int, score: float | None, state: str = "finished") -> Member:
    return Member(configuration, seed, RunState(state), score, agent_steps=100)


def planned(
    spec: SweepSpec, members: list[Member], active: int = 2, looks: int = 0, elapsed_s: float = 1.0
) -> Plan:
    return plan(limits_of(spec), range(active), members, looks=looks, elapsed_s=elapsed_s)


def test_seeds_are_started_in_turns_within_the_limit_of_concurrency() -> None:
    assert planned(spec(), []).start == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    assert planned(spec(concurrency=3), []).start == [(0, 0), (1, 0), (0, 1)]
    started = [done(0, 0, 1.0), done(1, 0, None, "running"), done(0, 1, None, "lost")]
    assert planned(spec(concurrency=3), started).start == [(1, 1)]
    assert planned(spec(concurrency=2), started).start == []


def test_nothing_is_planned_while_a_seed_of_the_turn_trains() -> None:
    members = [done(at % 2, at // 2, float(at)) for at in range(5)] + [done(1, 2, None, "stopping")]
    assert planned(spec(), members) == Plan(looks=0)


def test_configuration_that_is_worse_gets_no_further_seed() -> None:
    members = [done(0, seed, 100.0 + seed) for seed in range(5)] + [
        done(1, seed, 1.0 + seed) for seed in range(5)
    ]
    result = planned(spec(max_seeds=9, racing={"initial_seeds": 5}), members)
    assert result.eliminated == {1: "worse than another after 5 seeds, with 95% confidence"}
    assert (result.finished, result.looks) == ("all other configurations are eliminated", 1)
    assert planned(spec(max_seeds=9, racing={"initial_seeds": 5}), members, looks=1).start == [(0, 5), (1, 5)]


def test_undecided_configurations_get_another_seed() -> None:
    members = [done(at % 2, at // 2, float(at)) for at in range(6)]
    result = planned(spec(), members)
    assert (result.start, result.looks, result.eliminated) == ([(0, 3), (1, 3)], 1, {})
    members += [done(0, 3, 3.0), done(1, 3, 3.1)]
    result = planned(spec(), members, looks=1)
    assert (result.looks, result.finished) == (2, "every remaining configuration has had all its seeds")


def test_without_racing_every_configuration_gets_all_its_seeds() -> None:
    all_seeds = spec(racing=None)
    assert len(planned(all_seeds, []).start) == 8
    members = [done(number, seed, 100.0 * number) for number in range(2) for seed in range(4)]
    result = planned(all_seeds, members)
    assert (result.eliminated, result.finished) == ({}, "every remaining configuration has had all its seeds")


def test_only_finished_runs_count() -> None:
    members = [done(0, seed, 1.0 + seed) for seed in range(3)]
    members += [done(1, 0, 900.0, "stopped"), done(1, 1, None, "failed"), Member(1, 2, None)]
    result = planned(spec(), members)
    assert result.eliminated == {1: "none of its runs has a score"}
    assert result.finished == "all other configurations are eliminated"
    nothing = [done(number, seed, None, "failed") for number in range(2) for seed in range(3)]
    assert planned(spec(), nothing).finished == "no configuration has a score"


def test_budget_starts_no_further_run_and_waits_for_those_that_train() -> None:
    runs = spec(budget={"runs": 3})
    assert planned(runs, []).start == [(0, 0), (1, 0), (0, 1)]
    members = [done(0, 0, 1.0), done(1, 0, 1.0), done(0, 1, None, "running")]
    assert planned(runs, members) == Plan(looks=0)
    members[2] = done(0, 1, 1.0)
    assert planned(runs, members).finished == "its budget of 3 runs is used up"
    before = [replace(member, is_charged=False) for member in members]
    assert planned(runs, before).start == [(1, 1), (0, 2), (1, 2)], "runs that existed cost nothing"
    steps = spec(budget={"agent_steps": 300})
    assert planned(steps, members).finished == "its budget of 300 agent steps is used up"
    assert planned(spec(budget={"agent_steps": 301}), members).start
    time = spec(budget={"wall_time_s": 60})
    assert planned(time, members, elapsed_s=60).finished == "its time of 60 s is over"
    assert planned(time, members, elapsed_s=59).start


def test_budget_does_not_cut_a_sweep_that_has_all_its_runs() -> None:
    members = [done(number, seed, 1.0) for number in range(2) for seed in range(4)]
    result = planned(spec(racing=None, budget={"runs": 8}), members)
    assert result.finished == "every remaining configuration has had all its seeds"


def test_new_configuration_gets_the_seeds_that_the_others_have() -> None:
    members = [done(number, seed, 1.0 + seed) for number in range(2) for seed in range(4)]
    result = planned(spec(), members, active=3, looks=2)
    assert result.start == [(2, 0), (2, 1), (2, 2), (2, 3)]


@given(st.integers(1, 6), st.integers(3, 6), st.integers(1, 9), st.integers(0, 2**31), st.booleans())
def test_every_sweep_ends_with_distinct_seeds(
    n: int, max_seeds: int, concurrency: int, seed: int, racing: bool
) -> None:
    rng = np.random.default_rng(seed)
    means = rng.normal(0, 5, n)
    limits = limits_of(
        spec(max_seeds=max_seeds, concurrency=concurrency, **({} if racing else {"racing": None}))
    )
    members: dict[tuple[int, int], Member] = {}
    active, looks, finished = list(range(n)), 0, None
    while finished is None:
        result = plan(limits, active, [*members.values()], looks=looks, elapsed_s=0.0)
        assert not {*result.start} & {*members}, "nothing is started twice"
        assert {number for number, _ in result.start} <= {*active}
        n_open = sum(not member.has_ended for member in members.values())
        assert n_open + len(result.start) <= concurrency
        members |= {key: Member(*key, RunState.RUNNING) for key in result.start}
        active = [number for number in active if number not in result.eliminated]
        looks, finished = result.looks, result.finished
        trains = [key for key, member in members.items() if not member.has_ended]
        assert trains or finished, "it goes on until it has finished"
        if trains:
            key = trains[int(rng.integers(len(trains)))]
            members[key] = done(*key, float(rng.normal(means[key[0]])))
    for number in active:
        assert [key[1] for key in sorted(members) if key[0] == number] == list(range(max_seeds)) or len(
            active
        ) == 1
