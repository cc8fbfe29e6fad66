"""Route `/runs/{id}/fork`."""

from backend.http.access import Operator
from backend.http.dependencies import AppStateDep, Artifacts, Work, require_room
from backend.http.idempotency.route import IdempotentRoute
from backend.http.pages import RunId
from backend.http.routing import ResourceRouter
from backend.runs.forks import service
from backend.runs.forks.schemas import ForkRequest
from backend.runs.runs.schemas import RunOut

router = ResourceRouter(prefix="/runs", tags=["runs"], route_class=IdempotentRoute)


@router.post("/{run_id}/fork", status_code=201)
def fork_run(
    run_id: RunId,
    principal: Operator,
    work: Work,
    artifacts: Artifacts,
    state: AppStateDep,
    body: ForkRequest | None = None,
) -> RunOut:
    """Create a run that starts from a checkpoint of this one, with changes."""
    request = body or ForkRequest()
    require_room(state.settings)
    state.limits.quotas.charge(principal, state.settings, n_runs=1)
    fork = service.create(work, state.db_engine, artifacts, run_id, request, principal.id)
    return RunOut.of(fork)
