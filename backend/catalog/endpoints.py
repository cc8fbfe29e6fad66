"""Routes of `/algorithms` and `/environments`."""

from fastapi import APIRouter

from backend.auth.access import Viewer
from backend.catalog import service
from backend.catalog.schemas import AlgorithmOut, AlgorithmPage, EnvironmentOut, EnvironmentPage
from backend.dependencies import ReadSession
from backend.errors import NotFound

router = APIRouter(tags=["catalogue"])


@router.get("/algorithms")
def list_algorithms(actor: Viewer) -> AlgorithmPage:
    """Every algorithm, with the JSON Schema of its settings."""
    return AlgorithmPage(items=list(service.algorithms().values()))


@router.get("/algorithms/{algorithm_id}")
def read_algorithm(algorithm_id: str, actor: Viewer) -> AlgorithmOut:
    """One algorithm."""
    found = service.algorithms().get(algorithm_id)
    if found is None:
        raise NotFound(f"there is no algorithm {algorithm_id!r:.80}")
    return found


@router.get("/environments")
def list_environments(actor: Viewer, session: ReadSession) -> EnvironmentPage:
    """Every world, with the JSON Schema of its settings; hosts' own worlds last."""
    return EnvironmentPage(items=list(service.environments(session).values()))


@router.get("/environments/{environment_id:path}")
def read_environment(environment_id: str, actor: Viewer, session: ReadSession) -> EnvironmentOut:
    """One world; its id may hold a slash, as in `ALE/Pong-v5`."""
    found = service.environments(session).get(environment_id)
    if found is None:
        raise NotFound(f"there is no environment {environment_id!r:.80}")
    return found
