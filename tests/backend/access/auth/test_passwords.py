import pytest

from backend.access.auth.passwords import CHECKED_CHARACTERS, require_uncommon
from backend.platform.errors import Invalid


@pytest.mark.parametrize(
    ("password", "names"),
    [
        ("password12", ()),
        ("aaaaaaaaaa", ()),
        ("qwertyuiop", ()),
        ("P@ssw0rd123", ()),
        ("callboard1234", ()),
        ("katharina.mueller", ("katharina.mueller",)),
        ("a" * CHECKED_CHARACTERS + "correct horse battery", ()),
    ],
)
def test_common_password_is_rejected_and_not_quoted(password: str, names: tuple[str, ...]) -> None:
    with pytest.raises(Invalid, match="easy to guess") as error:
        require_uncommon("new", password, *names)
    [problem] = error.value.errors
    assert problem.field == "new"
    assert password not in problem.message


@pytest.mark.parametrize(
    "password", ["correct horse battery", "vTq8#kZp2w", "katharina.mueller", "grün ist die Hoffnung"]
)
def test_uncommon_password_is_accepted(password: str) -> None:
    require_uncommon("new", password, "Anna")
