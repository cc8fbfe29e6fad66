import hypothesis.strategies as st
import pytest
from hypothesis import given
from pydantic import ValidationError

from backend.upkeep.retention.policy import (
    RESUMABLE,
    InstallationPolicy,
    RetentionPolicy,
    StoredCheckpoint,
    StoredEpisode,
    removable_checkpoints,
    removable_episodes,
)

LIMITS = st.none() | st.integers(1, 5)
SCORES = st.none() | st.integers(-2, 2).map(float)
CHECKPOINTS = st.lists(st.tuples(st.integers(0, 50), st.booleans(), SCORES, SCORES, SCORES), max_size=12)
Row = tuple[int, bool, float | None, float | None, float | None]
POLICIES = st.builds(
    RetentionPolicy,
    checkpoints_best=LIMITS,
    checkpoints_last=LIMITS,
    checkpoints_every_agent_steps=st.none() | st.integers(1, 30),
)


def _checkpoints(rows: list[Row]) -> list[StoredCheckpoint]:
    ordered = sorted(enumerate(rows), key=lambda row: (row[1][0], row[0]), reverse=True)
    return [
        StoredCheckpoint(str(n), f"{n}.pt", steps, 1, superseded, evaluated, score, engine_score)
        for n, (steps, superseded, evaluated, score, engine_score) in ordered
    ]


@given(CHECKPOINTS, POLICIES, st.booleans(), st.sets(st.integers(0, 11)))
def test_removable_checkpoints_leave_what_is_needed_and_nothing_more_the_second_time(
    rows: list[Row],
    policy: RetentionPolicy,
    ended: bool,
    awaited: set[int],
) -> None:
    stored = _checkpoints(rows)
    files = {f"{n}.pt" for n in awaited}
    gone = removable_checkpoints(policy, stored, ended=ended, awaited=files)
    left = [checkpoint for checkpoint in stored if checkpoint not in gone]
    live = [checkpoint for checkpoint in stored if not checkpoint.superseded]
    assert all(checkpoint in left for checkpoint in live[: 1 if ended else RESUMABLE])
    assert all(checkpoint in left for checkpoint in live[: policy.checkpoints_last or 0])
    assert not files & {checkpoint.file for checkpoint in gone}
    evaluated = [checkpoint.evaluated for checkpoint in live if checkpoint.evaluated is not None]
    if evaluated and policy.checkpoints_best:
        assert max(evaluated) in [checkpoint.evaluated for checkpoint in left]
    scored = [
        (checkpoint.engine_score, -checkpoint.agent_steps)
        for checkpoint in live
        if checkpoint.engine_score is not None
    ]
    if scored and not ended:
        assert max(scored) in [(checkpoint.engine_score, -checkpoint.agent_steps) for checkpoint in left]
    if (every := policy.checkpoints_every_agent_steps) is not None:
        reached = {checkpoint.agent_steps // every for checkpoint in live}
        assert reached - {0} <= {checkpoint.agent_steps // every for checkpoint in left}
    if not policy.thins_checkpoints:
        assert not gone
    assert removable_checkpoints(policy, left, ended=ended, awaited=files) == []


def test_removable_episodes_are_counted_by_kind() -> None:
    episodes = [
        StoredEpisode(f"{kind}{steps}", kind, steps, float(-steps), superseded=steps == 50)
        for steps in (50, 40, 30, 20, 10)
        for kind in ("training", "evaluation")
    ]
    policy = RetentionPolicy(episodes_best=1, episodes_last=1)
    gone = removable_episodes(policy, episodes, awaited=["training30"])
    left = [episode.id for episode in episodes if episode.id not in gone]
    assert left == ["training40", "evaluation40", "training30", "training10", "evaluation10"]
    assert removable_episodes(RetentionPolicy(), episodes) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("checkpoints_last", 0),
        ("checkpoints_best", -1),
        ("checkpoints_every_agent_steps", 0),
        ("episodes_last", 10_001),
        ("videos_days", 0),
        ("videos_days", 1.5),
        ("event_logs", "delete"),
        ("event_logs_days", -1),
        ("audit_days", "7"),
        ("unknown", 1),
    ],
)
def test_wrong_settings_are_refused_with_their_field(field: str, value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        InstallationPolicy.model_validate({field: value})
    assert [error["loc"] for error in caught.value.errors()] == [(field,)]
