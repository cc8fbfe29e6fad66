"""Presets: where they are offered, in what order, and what the agent sees there."""

import csv
from importlib import resources
from typing import Any

import pytest
from pydantic import BaseModel

from backend.specs.algorithms import ALGORITHMS, Preset
from backend.specs.constants import ATARI_SOURCES, Sources
from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.base import Environment
from backend.specs.protocols import PROTOCOLS
from backend.specs.run import parse_run_spec
from tests.backend.specs.printed import PAAC_CODE
from tests.support.algorithms import LEARNING

GAMES = [environment for environment in ENVIRONMENTS.values() if environment.family == "atari"]


def offered(algorithm: str, environment: Environment) -> list[Preset]:
    return [preset for preset in ALGORITHMS[algorithm].presets if preset.suits(environment)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_offered_preset_is_a_valid_request(algorithm: str) -> None:
    environments = [*ENVIRONMENTS.values(), ENVIRONMENTS["ALE/Pong-v5"]]
    kinds = {
        (environment.family, environment.observation, environment.actions): environment
        for environment in environments
    }
    for environment in kinds.values():
        if environment.actions not in ALGORITHMS[algorithm].actions:
            continue
        for preset in offered(algorithm, environment):
            parts = {"config": preset.config, "environment_config": preset.environment_config}
            request = {"algorithm": algorithm, "environment": environment.id, "stop": preset.stop}
            assert parse_run_spec(request | parts), (preset.id, environment.id)


@pytest.mark.parametrize("algorithm", LEARNING)
def test_atari_starts_with_a_full_frame_and_the_paper_comes_second(algorithm: str) -> None:
    for game in GAMES:
        presets = offered(algorithm, game)
        assert len(presets) >= 2, f"{algorithm} needs a preset for small machines and one as in the paper"
        first, second, *_ = presets
        assert not first.environment_config.get("crop")
        assert "paper" in second.title
        assert second.environment_config == {"frame_maximum": "rgb"}


VARIANTS: dict[tuple[str, str], dict[str, Any]] = {
    ("a3c", "paper-lstm"): {"recurrent": True},  # Mnih 2016, 5.1: 256 LSTM cells
    ("a3c", "paper-57-games"): {"network": "nature"},  # Mnih 2016, 5.1: the network of Mnih 2015
    ("a3c", "full-frame"): {"n_actors": 4},
    ("a3c", "paper-labyrinth"): {"recurrent": True, "reward_clip": 0.0},  # Mnih 2016, 5.4: A3C LSTM
    ("a3c", "labyrinth-4-actors"): {"recurrent": True, "reward_clip": 0.0, "n_actors": 4},
    ("gorila_dqn", "paper-one-memory"): {"replay_capacity": 1_000_000},
}
"""What a preset as in the paper has instead of the paper's column: another experiment of the paper, or what
its title names."""
OTHER_TITLES = {("paac_q", "paper"): "As in the papers"}


def as_in_the_paper() -> list[tuple[str, Preset]]:
    return [
        (algorithm, preset)
        for algorithm in ALGORITHMS
        for preset in ALGORITHMS[algorithm].presets
        if preset.id.startswith("paper") or preset.title.startswith("As in the paper")
    ]


def papers_column(sources: Sources, defaults: BaseModel) -> dict[str, Any]:
    """Setting -> the value that a paper prints; settings without one are left out."""
    values = defaults.model_dump(mode="json")
    printed = {name: source.printed(values[name]) for name, source in sources.items()}
    return {name: value for name, value in printed.items() if value is not None}


@pytest.mark.parametrize(
    ("algorithm", "preset"), as_in_the_paper(), ids=lambda value: getattr(value, "id", value)
)
def test_preset_as_in_the_paper_equals_the_papers_column_in_every_setting(
    algorithm: str, preset: Preset
) -> None:
    [environment, *_] = [environment for environment in ENVIRONMENTS.values() if preset.suits(environment)]
    defaults = ALGORITHMS[algorithm].defaults(environment.observation, environment.actions)
    config = defaults | environment.config_defaults | preset.config
    printed = papers_column(ALGORITHMS[algorithm].sources, ALGORITHMS[algorithm].config())
    expected = printed | VARIANTS.get((algorithm, preset.id), {})
    assert {name: config[name] for name in expected} == expected
    if environment.family == "atari":
        game = environment.config().model_dump(mode="json") | preset.environment_config
        printed = papers_column(ATARI_SOURCES, environment.config())
        assert {name: game[name] for name in printed} == printed
    expected_title = OTHER_TITLES.get((algorithm, preset.id), "As in the paper")
    differs = bool(VARIANTS.get((algorithm, preset.id))) and environment.family == "atari"
    assert preset.title.startswith(f"{expected_title}, " if differs else expected_title)


def test_paac_has_the_printed_constants_and_those_of_its_authors_code() -> None:
    paac = ALGORITHMS["paac"]
    presets = {preset.id: preset for preset in paac.presets}
    assert presets["paper"].config == {}  # averaged over n_e t_max, as equations 10 and 11 print
    code = presets["authors-code"]
    assert code.config == paac.authors_code == PAAC_CODE
    assert (code.title, code.stop) == ("As in the authors' code", {"agent_steps": 80_000_000})
    assert code.environment_config == presets["paper"].environment_config


def test_every_preset_as_in_the_paper_is_compared_with_it() -> None:
    compared = {(algorithm, preset.id) for algorithm, preset in as_in_the_paper()}
    assert {algorithm for algorithm, preset in compared if preset == "paper"} == set(LEARNING)
    assert set(VARIANTS) <= compared


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_cropped_presets_are_offered_for_pong_only_and_named_so(algorithm: str) -> None:
    for preset in ALGORITHMS[algorithm].presets:
        crops = preset.environment_config.get("crop", False)
        assert ("cropped frame" in preset.title) == crops
        assert preset.id.endswith("-cropped") == crops
        if crops:
            assert [environment.id for environment in GAMES if preset.suits(environment)] == ["ALE/Pong-v5"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_centred_presets_are_named_so_and_none_as_in_the_paper_centres(algorithm: str) -> None:
    for preset in ALGORITHMS[algorithm].presets:
        centres = preset.config.get("centre", False)
        assert ("centred" in preset.title) == preset.id.endswith("-centred") == centres
        assert not (centres and "paper" in preset.title)
    centred = [preset.id for preset in ALGORITHMS[algorithm].presets if preset.config.get("centre")]
    assert centred == (["full-frame-centred"] if algorithm in ("paac", "a3c", "ga3c") else [])


@pytest.mark.parametrize(
    ("algorithm", "base", "also"),
    [
        ("paac", "full-frame", {"n_e", "learning_rate", "max_grad_norm"}),  # what the search changed
        ("ga3c", "two-cpu-cores", set()),
    ],
)
def test_centred_preset_is_the_full_frame_one_with_centred_observations(
    algorithm: str, base: str, also: set[str]
) -> None:
    presets = {preset.id: preset.config for preset in ALGORITHMS[algorithm].presets}
    centred = presets["full-frame-centred"]
    changed = {name for name, value in centred.items() if presets[base].get(name) != value}
    assert changed == {"centre", "evaluation_interval_agent_steps"} | also
    assert presets[base].keys() <= centred.keys()


def test_preset_suits_its_observation_actions_family_and_environments() -> None:
    pong, hopper, pole = (ENVIRONMENTS[name] for name in ("ALE/Pong-v5", "Hopper-v5", "CartPole-v1"))
    fits: dict[str, Any] = {"id": "p", "title": "P", "description": "", "observation": "vector"}
    assert [Preset(**fits).suits(e) for e in (pong, hopper, pole)] == [False, True, True]
    continuous = Preset(**fits, actions=("continuous",))
    assert [continuous.suits(e) for e in (pong, hopper, pole)] == [False, True, False]
    classic = Preset(**fits, families=("classic",))
    assert [classic.suits(e) for e in (pong, hopper, pole)] == [False, False, True]
    hopper_only = Preset(**fits, environments=("Hopper-v5",))
    assert [hopper_only.suits(e) for e in (pong, hopper, pole)] == [False, True, False]


def test_share_that_the_crop_hides_is_stored_for_every_game() -> None:
    table = resources.files("backend.specs.environments").joinpath("atari_crop.csv").read_text("utf-8")
    rows = {row["game"]: float(row["hidden_share"]) for row in csv.DictReader(table.splitlines())}
    assert {f"ALE/{game}-v5": share for game, share in rows.items()} == {
        game.id: game.crop_hides for game in GAMES
    }
    others = [environment for environment in ENVIRONMENTS.values() if environment not in GAMES]
    assert all(environment.crop_hides is None for environment in others)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_measured_score_stands_with_its_protocol_and_frame(algorithm: str) -> None:
    for preset in ALGORITHMS[algorithm].presets:
        if "seed" not in preset.measured:
            continue  # no score
        assert any(f" {protocol}," in preset.measured for protocol in PROTOCOLS), preset.id
        # The compact network standardises what it sees.
        compact = preset.config.get("network") == "compact"
        standardised = compact or preset.config.get("standardise") is True
        if any(f"{game.title}, " in preset.measured for game in GAMES):
            frame = "cropped" if preset.environment_config.get("crop") else "full"
            words = "standardised" if standardised else "not standardised"
            words = "centred" if preset.config.get("centre") else words
            assert f", {frame} frame, {words}, " in preset.measured, preset.id
        elif standardised:
            assert ", standardised, " in preset.measured, preset.id


@pytest.mark.parametrize("algorithm", LEARNING)
def test_preset_as_in_the_paper_names_what_it_reached(algorithm: str) -> None:
    [paper] = [preset for preset in ALGORITHMS[algorithm].presets if preset.id == "paper"]
    assert paper.measured
