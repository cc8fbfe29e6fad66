from backend.db.base import ID_ALPHABET, new_run_id
from backend.runs.styles import N_COLOURS, N_STYLES, group_styles, run_style


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


def test_groups_keep_their_style_when_another_is_removed_and_their_colour_when_it_had_the_same() -> None:
    keys = [f"{at:016x}" for at in range(8)]
    alone = {key: group_styles([key])[key] for key in keys}
    styles = group_styles(keys)
    for removed in keys:
        rest = group_styles(key for key in keys if key != removed)
        for key, style in rest.items():
            assert style % N_COLOURS == styles[key] % N_COLOURS == alone[key] % N_COLOURS
            if alone[key] != alone[removed]:
                assert style == styles[key]


def test_groups_with_the_same_style_differ_in_their_dash() -> None:
    same: dict[int, list[str]] = {}
    for key in (f"{at:016x}" for at in range(200)):
        same.setdefault(group_styles([key])[key], []).append(key)
    first, second = max(same.values(), key=len)[:2]
    styles = group_styles([first, second])
    assert styles[first] == group_styles([first])[first]
    assert styles[second] == (styles[first] + N_COLOURS) % N_STYLES
