"""Names of runs and groups in a view."""

import json
from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.db import Run
from backend.db.base import new_id
from backend.platform.caching import Cache
from backend.runs.runs.external_spec import ExternalFields, external_spec
from backend.runs.runs.groups import COMPUTED, Brief, Specs, group_key
from backend.runs.runs.names import (
    Beside,
    Named,
    Setting,
    names_in_view,
    names_of_groups,
    names_of_runs,
    value_texts,
)
from backend.specs.names import default_name, fork_name, grid_name
from backend.specs.run import parse_run_spec
from backend.specs.states import RunState
from tests.support.rows import CARTPOLE, external_request


def run(**changes: Any) -> Run:
    spec = parse_run_spec(CARTPOLE | changes)
    return Run(
        id=new_id(),
        origin="callboard",
        name=spec.name or default_name(spec),
        algorithm=spec.algorithm,
        environment=spec.environment,
        group=spec.group,
        seed=spec.seed,
        departures={},
        spec=spec.model_dump(mode="json"),
    )


def external(**fields: Any) -> Run:
    spec = external_spec(ExternalFields.model_validate(external_request() | fields))
    columns = {name: spec[name] for name in ("origin", "name", "algorithm", "environment", "group", "seed")}
    return Run(id=new_id(), departures={}, spec=spec, **columns)


def runs(*several: Run) -> list[str]:
    return names_of_runs(several).names


def groups(*firsts: Run) -> list[str]:
    return names_of_groups(firsts).names


def test_only_what_differs_is_in_a_name_and_the_rest_is_stated_once() -> None:
    pair = [run(config={"learning_rate": rate}) for rate in (0.001, 0.0003)]
    view = names_of_runs(pair)
    assert view.names == ["lr 0.001", "lr 0.0003"]
    assert view.shared == "PAAC · CartPole"
    assert runs(*pair, run(algorithm="a3c")) == ["PAAC · lr 0.001", "PAAC · lr 0.0003", "A3C"]
    assert runs(pair[0]) == groups(pair[0]) == ["PAAC on CartPole"]
    assert runs(run(name="mine")) == groups(run(group="mine")) == ["mine"]
    assert names_of_runs([]).names == []


def test_what_stands_beside_names_is_no_part_of_them() -> None:
    pair = [run(config={"gamma": gamma}, seed=seed) for seed, gamma in ((1, 0.9), (2, 0.99))]
    view = names_of_runs([*pair, run(algorithm="a3c", seed=7)], beside=("algorithm", "environment"))
    assert (view.shared, view.names) == ("", ["γ 0.9", "γ 0.99", "seed 7"])
    assert names_of_runs(pair[:1], beside=["algorithm", "environment"]).names == ["seed 1"]


def test_settings_are_called_by_their_symbols_or_the_last_parts_of_their_names() -> None:
    assert groups(run(config={"gamma": 0.9, "n_e": 32}), run(config={"gamma": 0.99, "n_e": 8})) == [
        "γ 0.9 · nₑ 32",
        "γ 0.99 · nₑ 8",
    ]
    parts = [{"optim.lr": 0.1, "clip.range": 1}, {"optim.lr": 0.2, "clip.range": 2}]
    assert runs(*(external(config=config) for config in parts)) == ["lr 0.1 · range 1", "lr 0.2 · range 2"]
    two = [{"actor.lr": 0.1, "critic.lr": 1}, {"actor.lr": 0.2, "critic.lr": 2}]
    assert runs(*(external(config=config) for config in two))[0] == "actor.lr 0.1 · critic.lr 1"


def test_settings_of_environments_are_compared_within_them() -> None:
    pongs = [run(environment="ALE/Pong-v5", environment_config={"crop": crop}) for crop in (True, False)]
    assert groups(*pongs, run()) == ["Pong · crop true", "Pong · crop false", "CartPole"]


def test_seeds_are_named_where_names_would_be_equal() -> None:
    two = [run(seed=seed, config={"gamma": 0.9}) for seed in (3, 5)]
    assert runs(*two, run(seed=7)) == ["γ 0.9 · seed 3", "γ 0.9 · seed 5", "γ 0.99"]
    assert runs(*two) == ["seed 3", "seed 5"]
    alike = [run(), run()]
    assert runs(*alike) == [f"PAAC on CartPole · #{row.id[-6:]}" for row in alike]
    fork = run()
    fork.forked_at_agent_steps = 234_100
    assert runs(run(), fork) == ["PAAC on CartPole", "fork at 234k"]


def test_name_that_a_person_gave_stands_first() -> None:
    mine, other = run(name="mine", config={"gamma": 0.9}), run()
    assert runs(mine, other) == ["mine · γ 0.9", "γ 0.99"]
    assert names_of_runs([run(name="mine seed 1", seed=1), run(name="mine seed 2", seed=2)]).shared == (
        "mine · PAAC · CartPole"
    )


@pytest.mark.parametrize("name", ["paac CartPole-v1 is best", "wide learning rate"])
def test_names_that_only_look_like_default_ones_are_given_ones(name: str) -> None:
    assert runs(run(name=name), run())[0] == name


def test_default_names_are_no_given_ones() -> None:
    spec = parse_run_spec(CARTPOLE | {"config": {"n_e": 8, "gamma": 0.9}, "seed": 4})
    paths = ["config.n_e", "config.gamma"]
    wide = parse_run_spec(CARTPOLE | {"config": {"n_e": 16}})
    for name in (default_name(spec), grid_name(spec, paths, 3), fork_name(default_name(wide), wide, spec)):
        assert runs(run(name=name, seed=4), run(seed=5)) == ["seed 4", "seed 5"], name
    given_spec = spec.model_copy(update={"name": "wide"})
    assert runs(run(name=grid_name(given_spec, paths, 3), seed=4), run()) == ["wide", "PAAC on CartPole"]


def test_group_of_runs_stands_first_where_it_differs_among_runs_of_one_kind() -> None:
    rates = [run(group="rates", config={"learning_rate": rate}) for rate in (0.01, 0.1)]
    assert names_of_groups(rates).shared == "rates · PAAC · CartPole"
    assert groups(*rates, run(group="baselines", algorithm="a3c"))[2] == "A3C"
    assert groups(*rates, run(group="later", config={"learning_rate": 1}))[1:] == [
        "rates · lr 0.1",
        "later · lr 1",
    ]


def test_departures_are_part_of_names() -> None:
    plain, changed = run(config={"learning_rate": 0.0005}), run(config={"learning_rate": 0.0005})
    changed.departures = {"learning_rate": "0.003 → 0.0005 at 234k"}
    assert runs(plain, changed) == ["lr 0.0005", "lr 0.003 → 0.0005 at 234k"]
    old = run()
    old.departures = {"MuJoCo": "3"}
    assert groups(old, run()) == ["MuJoCo 3", "PAAC on CartPole"]


def test_schedules_over_other_limits_are_part_of_names() -> None:
    linear = [
        run(stop={"agent_steps": steps}, config={"learning_rate_schedule": "linear"})
        for steps in (3_000, 6_000_000)
    ]
    assert groups(*linear) == ["annealed over 3000", "annealed over 6M"]


def test_external_runs_have_no_defaults_and_no_seeds_among_their_settings() -> None:
    several = [external(config={"seed": seed, "lr": lr}, seed=None) for seed, lr in ((2, 0.001), (4, 0.01))]
    assert groups(*several) == ["lr 0.001", "lr 0.01"]
    assert groups(external(config={"lr": 0.1}), external(config={})) == ["lr 0.1", "no lr"]
    unknown = [external(name=name, seed=None, config={}) for name in ("A2C_1", "PPO_1")]
    assert groups(*unknown) == ["A2C_1", "PPO_1"]


def test_damaged_specifications_have_names() -> None:
    damaged = run()
    damaged.spec = {}
    assert runs(damaged, run()) == ["paac (damaged)", "PAAC"]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.001, 0.0003], ["0.001", "0.0003"]),
        ([0.00123456, 1e-5], ["0.00123", "1e-5"]),
        ([0.1, 0.1001], ["0.1", "0.1001"]),
        ([1.0, 2], ["1", "2"]),
        ([1_000_000, 1_234_567, 9_999], ["1M", "1.23M", "9999"]),
        ([1_234_567, 1_234_568], ["1.234567M", "1.234568M"]),
        ([999_999, 10_000], ["1M", "10k"]),
        ([1234.5678, 2.5e20], ["1235", "2.5e20"]),
        ([True, 1, "1"], ["true", "1", '"1"']),
        ([None, [64, 64]], ["none", "[64, 64]"]),
        (["", "adam"], ['""', "adam"]),
        (["/home/me/data/first/run.yaml", "/home/me/data/other/run.yaml"], ["…first…", "…other…"]),
    ],
)
def test_values_have_three_digits_or_as_many_as_distinguish_them(values: list[Any], texts: list[str]) -> None:
    assert value_texts(values) == texts


VALUES = st.one_of(
    st.booleans(),
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=30),
    st.lists(st.integers(0, 3), max_size=2),
)
NAMED = st.builds(
    Named,
    id=st.just(""),
    algorithm=st.sampled_from(["PAAC", "A3C"]),
    environment=st.sampled_from(["Pong", "CartPole"]),
    given=st.sampled_from(["", "mine"]),
    settings=st.dictionaries(
        st.builds(Setting, st.sampled_from(["config", "environment_config"]), st.sampled_from("abcdefgh")),
        VALUES,
    ),
    further=st.lists(st.sampled_from(["", "seed 0", "seed 1"]), max_size=2),
)


@given(st.lists(NAMED, min_size=1, max_size=12), st.sets(st.sampled_from(["algorithm", "environment"])))
def test_no_two_names_of_a_view_are_equal_and_none_is_cut(view: list[Named], beside: set[Beside]) -> None:
    numbers = count()
    view = [Named(**vars(named) | {"id": f"{next(numbers):026}"}) for named in view]
    names = names_in_view(view, beside).names
    assert all(names)
    shown = {
        (name, *(getattr(named, kind) for kind in beside)) for named, name in zip(view, names, strict=True)
    }
    assert len(shown) == len(view)
    for kind, section in (("algorithm", "config"), ("environment", "environment_config")):
        for title in {getattr(named, kind) for named in view}:
            members = [at for at, named in enumerate(view) if getattr(named, kind) == title]
            settings = {key for at in members for key in view[at].settings if key.section == section}
            columns = {key: value_texts([view[at].value(key) for at in members]) for key in settings}
            differing = [texts for texts in columns.values() if len(set(texts)) > 1]
            if len(differing) <= 6:
                assert all(
                    text in names[at] for texts in differing for at, text in zip(members, texts, strict=True)
                )


def brief(row: Run) -> Brief:
    columns: dict[str, Any] = {
        name: getattr(row, name, None) for name in Brief._fields if name != "spec_text"
    }
    columns |= {"revision": 1, "state": RunState.FINISHED, "agent_steps": 0, "early_agent_steps": 0}
    return Brief(**columns, spec_text=json.dumps(row.spec))


def test_specifications_are_read_once() -> None:
    rows = [
        run(config={"n_e": 8}),
        run(group="other", config={"n_e": 4}),
        run(environment="ALE/Pong-v5", environment_config={"crop": True}),
        run(group="large", notes="x" * 5_000),
    ]
    briefs = [brief(row) for row in rows]
    asked: list[str] = []

    def read(lacking: Sequence[Brief]) -> Sequence[Brief]:
        asked.extend(run.id for run in lacking)
        return [next(known for known in briefs if known.id == run.id) for run in lacking]

    unread = [run._replace(spec_text=None) for run in briefs]
    specs = Specs(read, Cache(COMPUTED))
    names = names_of_groups(unread, specs)
    assert names == names_of_groups(rows)
    assert asked == [row.id for row in rows]
    assert names_of_groups(unread, specs) == names
    assert asked == [row.id for row in [*rows, rows[3]]], "long specifications are not kept"


def test_runs_of_different_groups_have_different_names() -> None:
    several = [
        run(config={"n_e": n_e}, group=group, environment=environment, seed=seed)
        for n_e in (8, 16)
        for group in (None, "a")
        for environment in ("CartPole-v1", "Catch-v0")
        for seed in range(3)
    ]
    firsts = {group_key(row): row for row in several}
    assert len(set(groups(*firsts.values()))) == 8
    assert len(set(runs(*several))) == 24
