from pathlib import Path

import pytest

from tests.support.rows import make_checkpoint, make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.service


def test_list_is_latest_first_without_removed_or_superseded(service: RunningService) -> None:
    run = make_run(service.engine)
    steps = [make_checkpoint(service.engine, run, n).agent_steps for n in (100, 300, 200)]
    make_checkpoint(service.engine, run, 400, removed=True)
    make_checkpoint(service.engine, run, 500, superseded=True)
    url = f"/api/v1/runs/{run.id}/checkpoints"
    shown = [item["agent_steps"] for item in service.client.get(url).json()["items"]]
    assert shown == sorted(steps, reverse=True)
    everything = service.client.get(url, params={"gone": True}).json()["items"]
    assert [item["agent_steps"] for item in everything] == [500, 400, 300, 200, 100]


def test_file_supports_ranges_and_is_404_when_missing(service: RunningService, tmp_path: Path) -> None:
    run = make_run(service.engine)
    checkpoint = make_checkpoint(service.engine, run)
    url = f"/api/v1/checkpoints/{checkpoint.id}/file"
    assert service.client.get(url).status_code == 404
    (tmp_path / checkpoint.file).write_bytes(b"weights")
    service.artifacts.put(tmp_path / checkpoint.file, run.id, "checkpoints")
    answer = service.client.get(url)
    assert answer.content == b"weights"
    assert answer.headers["content-disposition"] == 'attachment; filename="a1-s000000000100.pt"'
    part = service.client.get(url, headers={"Range": "bytes=1-3"})
    assert (part.status_code, part.content) == (206, b"eig")
    gone = make_checkpoint(service.engine, run, 200, removed=True)
    assert service.client.get(f"/api/v1/checkpoints/{gone.id}/file").status_code == 404
    assert service.client.get(f"/api/v1/checkpoints/{'0' * 26}/file").status_code == 404
