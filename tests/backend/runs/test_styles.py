from backend.db.base import ID_ALPHABET, new_run_id
from backend.runs.styles import N_STYLES, group_styles, run_style


def test_style_of_a_run_follows_from_the_last_character_of_its_id() -> None:
    assert [run_style("01ARZ3NDEKTSV4RRFFQ69G5FA" + each) for each in ID_ALPHABET] == list(range(N_STYLES))


def test_runs_created_one_after_another_have_different_styles() -> None:
    ids = [new_run_id() for _ in range(2 * N_STYLES)]
    assert len(set(ids)) == len(ids)
    for first in range(N_STYLES):
        assert len({run_style(each) for each in ids[first : first + N_STYLES]}) == N_STYLES


def test_groups_share_no_style_and_an_added_group_changes_none() -> None:
    keys = [f"{at:016x}" for at in range(N_STYLES)]
    styles = group_styles(keys)
    assert len(set(styles.values())) == N_STYLES
    for n in range(1, len(keys)):
        assert group_styles(keys[:n]).items() <= styles.items()
