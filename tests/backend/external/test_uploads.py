"""Parts of a file, which any web process may receive."""

from hashlib import sha256
from pathlib import Path

import pytest

from backend.db.base import new_id
from backend.external.uploads import Uploads
from backend.platform.artifacts import ArtifactStore
from backend.platform.errors import Conflict, Invalid


@pytest.mark.parametrize("place", ["folder", pytest.param("s3", marks=pytest.mark.service)])
def test_two_processes_receive_the_parts_of_a_file(
    place: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = (tmp_path / "store").as_uri() if place == "folder" else request.getfixturevalue("s3_url")
    first, second = (Uploads(ArtifactStore(url), tmp_path / name, 0) for name in ("first", "second"))
    run, upload, content = new_id(), new_id(), b"parameters"
    assert first.append(run, upload, 0, content[:4]) == 4
    assert second.append(run, upload, 4, content[4:7]) == 7
    with pytest.raises(Conflict) as conflict:
        first.append(run, upload, 4, content[4:])
    assert conflict.value.expected == 7
    with pytest.raises(Conflict), second.complete(run, upload, 10, sha256(content).hexdigest()):
        pass
    assert first.append(run, upload, 7, content[7:]) == 10
    with second.complete(run, upload, 10, sha256(content).hexdigest()) as path:
        assert path.read_bytes() == content
    assert not list(tmp_path.glob("second/*"))
    with pytest.raises(Invalid), first.complete(run, upload, 10, sha256(b"other").hexdigest()):
        pass
    assert ArtifactStore(url).ends_of_parts(run, upload) == []
