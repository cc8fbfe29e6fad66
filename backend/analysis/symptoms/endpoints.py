"""Route of the training doctor."""

from backend.analysis.symptoms import service
from backend.analysis.symptoms.schemas import SymptomOut, Symptoms
from backend.http.access import Viewer
from backend.http.dependencies import ReadSession
from backend.http.pages import RunId
from backend.http.routing import ResourceRouter
from backend.runs.runs import service as runs

router = ResourceRouter(prefix="/runs/{run_id}/symptoms", tags=["runs"])


@router.get("")
def list_symptoms(run_id: RunId, principal: Viewer, session: ReadSession) -> Symptoms:
    """What is wrong with a run up to now, by five rules that look at its own metrics."""
    run = runs.get(session, run_id)
    return Symptoms(
        items=[
            SymptomOut(
                rule=rule.id,
                title=rule.title,
                since_agent_steps=finding.since,
                text=finding.text,
                advice=rule.advice,
                settings=[name for name in rule.settings if name in run.spec["config"]],
                source=rule.source,
            )
            for rule, finding in service.symptoms(session, run)
        ]
    )
