"""Protocols: what each does to an environment config, and which one a run has."""

import re
from pathlib import Path
from typing import Any

import pytest

from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.atari import AtariConfig
from backend.specs.environments.classic import ClassicConfig
from backend.specs.environments.custom import CustomConfig
from backend.specs.problems import InvalidSpec
from backend.specs.protocols import FIXED_CHOICES, PROTOCOLS, UnsupportedProtocolError, at_limit
from backend.specs.run import RunSpec, parse_run_spec
from tests.support.algorithms import LEARNING

TRAINING_SETTINGS: dict[str, Any] = {
    "sticky_actions": 0.1,
    "noop_max": 5,
    "fire_at_reset": True,
    "max_frames": 1_000,
    "life_loss_terminal": True,
    "frame_maximum": "luminance",
}
AGENT_SETTINGS: dict[str, Any] = {
    "frame_skip": 3,
    "full_action_set": True,
    "mode": 1,
    "difficulty": 2,
    "observation_size": "42x42",
    "crop": True,
}
"""What the agent sees and does, and the game: no protocol changes it."""


ROOT = Path(__file__).parents[3]


def spec_of(algorithm: str, environment: str, config: Any = None, environment_config: Any = None) -> RunSpec:
    request = {"algorithm": algorithm, "environment": environment, "stop": {"agent_steps": 1}}
    return parse_run_spec(request | {"config": config or {}, "environment_config": environment_config or {}})


def test_human_starts_are_those_of_nairs_section_on_evaluation() -> None:
    assert "Nair et al. 2015, section 5.2" in PROTOCOLS["human_starts"].description


@pytest.mark.parametrize(
    ("protocol", "noop_max", "sticky_actions", "max_frames"),
    [
        ("noop_starts", 30, 0.0, 108_000),  # Clemente et al. 2017, section 5.1
        ("noop_starts_5min", 30, 0.0, 18_000),  # Nair et al. 2015, section 5.2
        ("random_seeds", 0, 0.0, 108_000),  # Babaeizadeh et al. 2017, table 3, which states no cap
        ("sticky_actions_5min", 0, 0.25, 18_000),  # Machado et al. 2018
        ("sticky_actions_30min", 0, 0.25, 108_000),  # Castro et al. 2018
    ],
)
def test_protocol_fixes_starts_and_cap_and_keeps_what_the_agent_sees(
    protocol: str, noop_max: int, sticky_actions: float, max_frames: int
) -> None:
    for name in (protocol, f"{protocol}_greedy"):
        config = PROTOCOLS[name].evaluation_config(AtariConfig(**TRAINING_SETTINGS, **AGENT_SETTINGS))
        assert config.model_dump() == AGENT_SETTINGS | {
            "noop_max": noop_max,
            "sticky_actions": sticky_actions,
            "max_frames": max_frames,
            "fire_at_reset": False,
            "life_loss_terminal": False,
            "frame_maximum": "rgb",
        }
        assert PROTOCOLS[name].greedy == (name != protocol)


def test_plain_keeps_the_whole_environment_config() -> None:
    config = ClassicConfig(max_episode_agent_steps=7)
    assert PROTOCOLS["plain"].evaluation_config(config) == config


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_atari_run_has_the_protocol_of_its_algorithm(algorithm: str) -> None:
    expected = ALGORITHMS[algorithm].evaluation_protocol
    assert spec_of(algorithm, "ALE/Pong-v5").evaluation_protocol == expected


@pytest.mark.parametrize("algorithm", ["paac", "dqn"])
def test_agent_trained_with_sticky_actions_is_evaluated_with_them(algorithm: str) -> None:
    spec = spec_of(algorithm, "ALE/Pong-v5", environment_config={"sticky_actions": 0.25})
    assert spec.evaluation_protocol == "sticky_actions_5min"


@pytest.mark.parametrize("algorithm", ["paac", "dqn"])
def test_environment_without_noops_is_evaluated_plain(algorithm: str) -> None:
    assert spec_of(algorithm, "CartPole-v1").evaluation_protocol == "plain"


def test_chosen_protocol_replaces_the_default() -> None:
    chosen = {"evaluation_protocol": "noop_starts_5min"}
    sticky = {"sticky_actions": 0.25}
    assert spec_of("paac", "ALE/Pong-v5", chosen, sticky).evaluation_protocol == "noop_starts_5min"


def test_ga3c_as_in_the_paper_is_evaluated_by_random_seeds_and_else_as_the_others() -> None:
    [preset] = [preset for preset in ALGORITHMS["ga3c"].presets if preset.id == "paper"]
    spec = spec_of("ga3c", "ALE/Pong-v5", preset.config, preset.environment_config)
    assert spec.evaluation_protocol == "random_seeds"
    assert spec_of("ga3c", "ALE/Pong-v5").evaluation_protocol == "noop_starts"


def test_choices_are_the_available_protocols() -> None:
    available = {name for name, protocol in PROTOCOLS.items() if protocol.unavailable is None}
    assert set(FIXED_CHOICES) == available | {"auto"}


@pytest.mark.parametrize(
    ("environment", "protocol", "said"),
    [
        ("CartPole-v1", "noop_starts", 'CartPole-v1 has no protocol "noop_starts": use one of plain'),
        ("ALE/Pong-v5", "plain", "use one of noop_starts, noop_starts_greedy, noop_starts_5min"),
        (
            "ALE/Pong-v5",
            "human_starts",
            "it needs a start set of games played by people, as in human_starts:NAME",
        ),
        ("ALE/Pong-v5", "human_starts_greedy", "human_starts_greedy is not available"),
        ("ALE/Pong-v5", "agent_starts", "it needs a start set, as in agent_starts:NAME"),
        ("ALE/Pong-v5", "agent_starts:Court", 'has no protocol "agent_starts:Court"'),
        ("ALE/Pong-v5", "agent_starts:court@0", "has no protocol"),
        ("CartPole-v1", "agent_starts:court", "has no protocol"),
    ],
)
def test_unsupported_protocol_is_refused_with_the_ones_to_use(
    environment: str, protocol: str, said: str
) -> None:
    with pytest.raises(UnsupportedProtocolError) as caught:
        ENVIRONMENTS[environment].protocol(protocol)
    assert said in str(caught.value)


def test_run_with_unsupported_protocol_is_refused_with_its_field() -> None:
    with pytest.raises(InvalidSpec) as caught:
        spec_of("paac", "CartPole-v1", {"evaluation_protocol": "noop_starts"})
    [problem] = caught.value.problems
    assert problem.field == "config.evaluation_protocol"
    assert 'CartPole-v1 has no protocol "noop_starts"' in problem.message


def test_page_of_protocols_has_a_row_for_each_default() -> None:
    page = (ROOT / "docs/explanation/protocols.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert {algorithm.evaluation_protocol for algorithm in ALGORITHMS.values()} <= set(rows)


def test_readme_names_each_algorithm() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for algorithm in map(ALGORITHMS.__getitem__, LEARNING):
        title = algorithm.title.split(",")[0]  # a variant, such as "PAAC, n-step Q", goes with its base
        named = re.compile(rf"(?<![\w-])(?<!gorila )(?<!double ){re.escape(title)}\b", re.IGNORECASE)
        assert named.search(readme), f"README.md does not name {title}"


@pytest.mark.parametrize(
    ("protocol", "lengths", "expected"),
    [
        ("noop_starts_5min", [18_000, 17_972, 17_969, 900], (18_000, 2)),  # 1 to 30 no-ops before them
        ("noop_starts_greedy", [18_000], (108_000, 0)),
        ("sticky_actions_5min", [18_000, 17_999], (18_000, 1)),
        ("noop_starts", [], (108_000, None)),
        ("agent_starts:pong", [108_000], (108_000, None)),
        ("plain", [500], (None, None)),
    ],
)
def test_episodes_that_the_protocol_has_ended_are_counted(
    protocol: str, lengths: list[int], expected: tuple[int | None, int | None]
) -> None:
    assert at_limit(protocol, lengths) == expected


def test_cut_episodes_are_counted_in_an_environment_without_a_limit() -> None:
    cut_frames = CustomConfig().evaluation_cut_agent_steps
    assert CustomConfig(max_episode_agent_steps=7_000).evaluation_cut_agent_steps == 14_000
    assert at_limit("plain", [10_000, 9_999], cut_frames) == (10_000, 1)


@pytest.mark.parametrize(
    ("label", "protocol"),
    [
        ("random", "noop_starts"),
        ("human", "noop_starts"),
        ("A3C", "noop_starts"),
        ("A3C FF 1 day", "human_starts"),
        ("A3C FF", "human_starts"),
        ("A3C LSTM", "human_starts"),
    ],
)
def test_scores_of_57_games_are_known(label: str, protocol: str) -> None:
    """The 342 rows of `atari_a3c_and_noop_scores.csv`."""
    games = [
        name
        for name, environment in ENVIRONMENTS.items()
        for score in environment.published
        if (score.label, score.protocol) == (label, protocol)
    ]
    assert len(games) == len(set(games)) == 57
