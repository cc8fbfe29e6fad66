"""The catalogue as JSON documents, each serialised once."""

import json
from functools import cache, lru_cache

from sqlalchemy.orm import Session

from backend.catalogue import service
from backend.catalogue.schemas import AlgorithmPage, EnvironmentPage
from backend.hosts.repository import custom_environments
from backend.http.transfer import JsonDocument
from backend.specs.environments.custom import CustomEnvironment


@cache
def algorithms() -> JsonDocument:
    """Every algorithm, as `GET /algorithms` returns them."""
    return JsonDocument.of(AlgorithmPage(items=list(service.algorithms().values())))


def environments(session: Session) -> JsonDocument:
    """Every environment, as `GET /environments` returns them."""
    custom = custom_environments(session)
    return _environments(
        json.dumps([(environment.model_dump(mode="json"), hosts) for environment, hosts in custom.values()])
    )


@lru_cache(maxsize=4)
def _environments(custom_json: str) -> JsonDocument:
    custom = [(CustomEnvironment.model_validate(fields), hosts) for fields, hosts in json.loads(custom_json)]
    by_id = service.with_custom({environment.id: (environment, hosts) for environment, hosts in custom})
    return JsonDocument.of(EnvironmentPage(items=list(by_id.values())))
