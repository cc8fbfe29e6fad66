"""Views in the database."""

from collections.abc import Sequence

from sqlalchemy import and_, delete, func, or_, select
from sqlalchemy.orm import Session

from backend.db import User, View, ViewState, keyset


def add(session: Session, view: View) -> None:
    """Store a new view."""
    session.add(view)
    session.flush()


def get(session: Session, view_id: str, *, for_update: bool = False) -> View | None:
    """The view, or None. `for_update` locks its row until the end of the transaction."""
    return session.get(View, view_id, with_for_update=for_update or None, populate_existing=for_update)


def owner_name(session: Session, view: View) -> str:
    """Name of the user whose the view is."""
    return session.scalars(select(User.name).where(User.id == view.owner_id)).one()


def page(
    session: Session,
    user_id: str,
    *,
    name: str | None,
    project: str | None,
    owner: str | None,
    limit: int,
    cursor: str | None,
) -> tuple[list[tuple[View, str]], str | None]:
    """One page of the named views that a user may open, those changed last first, each with the name of its
    owner; the cursor of the next page.

    Args:
        session: any session.
        user_id: the user.
        name: only views of this name.
        project: only views of this project; empty: only those of all projects.
        owner: only views of the user of this name.
        limit: maximum number of rows.
        cursor: the cursor from the previous page.

    Raises:
        BadCursor: `cursor` does not belong to this list.
    """
    query = select(View).where(View.name.is_not(None), or_(View.owner_id == user_id, View.shared))
    if name is not None:
        query = query.where(View.name == name)
    if project is not None:
        query = query.where(View.project == project)
    if owner is not None:
        query = query.where(View.owner_id.in_(select(User.id).where(User.name == owner)))
    rows, next_cursor = keyset.page(
        session, query, by=View.changed_at, row_id=View.id, descending=True, limit=limit, cursor=cursor
    )
    ids = {row.owner_id for row in rows}
    names = dict(session.execute(select(User.id, User.name).where(User.id.in_(ids))).all())
    return [(row, names[row.owner_id]) for row in rows], next_cursor


def of_name(session: Session, owner_id: str, project: str, name: str) -> View | None:
    """The view of this name, or None."""
    named = and_(View.owner_id == owner_id, View.project == project, View.name == name)
    return session.scalars(select(View).where(named)).one_or_none()


def count(session: Session, owner_id: str) -> int:
    """Number of a user's named views."""
    counted = select(func.count()).select_from(View).where(View.owner_id == owner_id)
    return session.scalars(counted.where(View.name.is_not(None))).one()


def delete_unnamed(session: Session, owner_id: str, keep: int) -> None:
    """Delete a user's views without a name but for those changed last."""
    unnamed = select(View.id).where(View.owner_id == owner_id, View.name.is_(None))
    kept = session.scalars(unnamed.order_by(View.changed_at.desc(), View.id.desc()).limit(keep)).all()
    session.execute(
        delete(View).where(View.owner_id == owner_id, View.name.is_(None), View.id.not_in(kept or [""]))
    )


def remove(session: Session, view: View) -> None:
    """Delete a view with its states."""
    session.delete(view)
    session.flush()


def states(session: Session, view_id: str) -> Sequence[ViewState]:
    """The former documents of a view, the latest first."""
    query = select(ViewState).where(ViewState.view_id == view_id)
    return session.scalars(query.order_by(ViewState.version.desc())).all()


def keep_state(session: Session, state: ViewState, keep: int) -> None:
    """Store a former document of a view, and delete all but the last ones."""
    session.add(state)
    session.flush()
    of_view = select(ViewState.version).where(ViewState.view_id == state.view_id)
    last = session.scalars(of_view.order_by(ViewState.version.desc()).limit(keep)).all()
    session.execute(delete(ViewState).where(ViewState.view_id == state.view_id, ViewState.version < last[-1]))
