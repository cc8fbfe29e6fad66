import pytest
from httpx import Client

from tests.support.service import RunningService


@pytest.fixture
def client(service: RunningService) -> Client:
    return service.client
