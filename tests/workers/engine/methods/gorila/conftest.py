"""Ray inside the tests' own process."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def stay_without_ray_servers() -> Iterator[None]:
    """Keep Ray from ending this process a minute after it lost its first server, amid other tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", str(24 * 3600))
        yield
