"""The papers whose experiments can be repeated, with the studies made of them."""

from backend.experiments.definitions import PAPERS
from backend.experiments.experiments import repository
from backend.experiments.papers.schemas import PaperOut, Papers
from backend.experiments.studies.schemas import StudyOut
from backend.http.access import Viewer
from backend.http.dependencies import ReadSession
from backend.http.routing import ResourceRouter

router = ResourceRouter(prefix="/papers", tags=["papers"])

_STUDIES = 5
"""Maximum number of studies that are listed for a definition."""


@router.get("")
def list_papers(principal: Viewer, session: ReadSession) -> Papers:
    """The papers with their figures and tables, the scales at which each can be repeated, and its latest
    studies."""
    rows = repository.of_definitions(session, _STUDIES)
    counts = repository.counts(session, [row.id for paper_rows in rows.values() for row in paper_rows])
    studies = {name: [StudyOut.of(row, counts) for row in paper_rows] for name, paper_rows in rows.items()}
    return Papers(items=[PaperOut.of(paper, studies) for paper in PAPERS.values()])
