"""Views: who may open and change them, and what a save replaces.

Whoever is logged in keeps views of their own. A shared one is open to everybody; operators share and change
it, since what others see is theirs to change like a run. Its owner and admins delete it.
"""

from collections.abc import Collection

from sqlalchemy.orm import Session

from backend.analysis.views import repository
from backend.analysis.views.document import ViewDocument, read
from backend.analysis.views.schemas import ViewChanges, ViewRequest
from backend.db import View, ViewState
from backend.db.base import new_id
from backend.db.changes import record_change
from backend.db.clock import database_now
from backend.platform.errors import Conflict, Forbidden, Invalid, NotFound, Stale
from backend.platform.principals import Principal, Role
from backend.specs.problems import FieldProblem, quoted

MAX_NAMED, MAX_UNNAMED = 500, 100
"""Views of one user."""
MAX_STATES = 20
"""Former documents of a view that are kept."""


def create(session: Session, request: ViewRequest, principal: Principal) -> View:
    """Store a view.

    Raises:
        Forbidden: the role does not allow to share it.
        Invalid: it is to be shared, and has no name.
        Conflict: the name is taken, or the user has as many views as a user may have.
    """
    if request.shared:
        _require_operator(principal)
        if request.name is None:
            raise Invalid.field("name", "is required for a shared view")
    project = request.project or ""
    if request.name is not None:
        _require_free(session, principal.id, project, request.name)
        if repository.count(session, principal.id) >= MAX_NAMED:
            raise Conflict(f"you have {MAX_NAMED} views already; delete one")
    now = database_now(session)
    view = View(
        id=new_id(),
        owner_id=principal.id,
        project=project,
        name=request.name,
        shared=request.shared,
        version=1,
        document=request.document.stored(),
        created_at=now,
        changed_at=now,
    )
    repository.add(session, view)
    if request.name is None:
        repository.delete_unnamed(session, principal.id, MAX_UNNAMED)
    record_change(session, "view", view.id)
    return view


def get(session: Session, view_id: str, principal: Principal, *, for_update: bool = False) -> View:
    """A view that the user may open.

    Raises:
        NotFound: there is none.
    """
    view = repository.get(session, view_id, for_update=for_update)
    if view is None or not (view.shared or view.owner_id == principal.id):
        raise NotFound(f"view {view_id} does not exist, or is another user's")
    return view


def change(
    session: Session,
    view_id: str,
    changes: ViewChanges,
    principal: Principal,
    replaced: Collection[str] | None = None,
) -> View:
    """Change a view; a document that is replaced is kept as a state, unless the view has no name.

    Args:
        session: a writing session.
        view_id: the view.
        changes: what changes.
        principal: who changes it.
        replaced: versions, one of which the view must have; None: any.

    Raises:
        NotFound: there is no such view that the user may open.
        Forbidden: it is shared, or to be shared, and the role does not allow to change that.
        Stale: the view has another version.
        Invalid: it is to be shared, and has no name.
        Conflict: the name is taken, or the document is of another version of Callboard.
    """
    view = get(session, view_id, principal, for_update=True)
    if view.shared or changes.shared:
        _require_operator(principal)
    if replaced is not None and str(view.version) not in replaced:
        raise Stale(
            "the view has been saved meanwhile; nothing was changed: read it again, or save it as another"
        )
    if changes.name is not None and changes.name != view.name:
        _require_free(session, view.owner_id, view.project, changes.name)
    if changes.shared and changes.name is None and view.name is None:
        raise Invalid.field("name", "is required for a shared view")
    now = database_now(session)
    if changes.document is not None:
        _replace(session, view, changes.document)
    view.name = view.name if changes.name is None else changes.name
    view.shared = view.shared if changes.shared is None else changes.shared
    view.version += 1
    view.changed_at = now
    record_change(session, "view", view.id)
    return view


def delete(session: Session, view_id: str, principal: Principal) -> None:
    """Delete a view: one's own, or as an admin a shared one.

    Raises:
        NotFound: there is no such view that the user may open.
        Forbidden: it is another user's.
    """
    view = get(session, view_id, principal, for_update=True)
    if view.owner_id != principal.id and principal.role != Role.ADMIN:
        raise Forbidden("only its owner and admins delete a shared view")
    repository.remove(session, view)
    record_change(session, "view", view_id, state="deleted")


def _replace(session: Session, view: View, document: ViewDocument) -> None:
    """Give a view another document.

    Raises:
        Conflict: it has one of another version of Callboard, which would be lost.
    """
    if not read(view.document)[1]:
        raise Conflict(
            "the view is of another version of Callboard, or damaged, and can only be read: save another"
        )
    stored = document.stored()
    if stored == view.document:
        return
    if view.name is not None:
        former = ViewState(
            view_id=view.id, version=view.version, document=view.document, saved_at=view.changed_at
        )
        repository.keep_state(session, former, MAX_STATES)
    view.document = stored


def _require_operator(principal: Principal) -> None:
    if not principal.role.covers(Role.OPERATOR):
        raise Forbidden(f"a shared view requires the role {Role.OPERATOR}; your role is {principal.role}")


def _require_free(session: Session, owner_id: str, project: str, name: str) -> None:
    if repository.of_name(session, owner_id, project, name) is not None:
        raise Conflict(
            f"there is a view {quoted(name)} of this owner in this project already: use another name",
            [FieldProblem(field="name", message="is taken")],
        )
