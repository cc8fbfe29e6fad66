"""Pages of runs for people without a login: behind a link, or frozen in a file.

A link shows one page of the runs that it was created for, as they are when it is opened, and is accepted for
nothing else: its token is no credential of the API.
"""

import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy.orm import Session

from backend.access.auth.secrets import hash_secret
from backend.analysis.comparisons import run_groups
from backend.analysis.shares import repository
from backend.analysis.shares.contents import Shown, page_of
from backend.analysis.shares.page import to_html
from backend.analysis.shares.schemas import MAX_RUNS, FrozenRequest, ShareRequest
from backend.analysis.views.document import read
from backend.db import Share
from backend.db.base import new_id
from backend.db.clock import database_now
from backend.db.engine import caches_of
from backend.db.run import Run
from backend.platform.caching import CacheKind
from backend.platform.errors import Conflict, Invalid, NotFound
from backend.platform.principals import Principal, Role
from backend.runs.runs import listing
from backend.runs.runs import repository as runs
from backend.specs.states import RunState

MAX_SHARES = 100
"""Links of one user that work at the same time."""

KEPT_S = 10.0
"""How long whoever opens a link gets the page that was drawn last, unless a run of it was deleted since."""


class _Kept(NamedTuple):
    """The page behind a link, as it was drawn last."""

    at: datetime
    runs: frozenset[str]
    content: str


_PAGES = CacheKind[str, _Kept](2**25, lambda kept: len(kept.content))
"""By link, in characters."""

_STATES: dict[str, tuple[RunState, ...]] = {
    "all": (),
    "active": (RunState.QUEUED, RunState.STARTING, RunState.RUNNING, RunState.STOPPING, RunState.LOST),
    "finished": (RunState.FINISHED,),
    "stopped": (RunState.STOPPED,),
    "failed": (RunState.FAILED,),
}
"""As the list of runs filters them."""


def create(session: Session, request: ShareRequest, principal: Principal) -> tuple[Share, str]:
    """Create a link and its secret.

    Raises:
        Invalid: no run matches, or too many.
        Conflict: the user has as many links as a user may have.
    """
    chosen = _chosen(session, request)
    if repository.count(session, principal.id) >= MAX_SHARES:
        raise Conflict(f"you have {MAX_SHARES} links already: revoke one")
    now = database_now(session)
    token = secrets.token_urlsafe(32)
    share = Share(
        id=new_id(),
        owner_id=principal.id,
        token_hash=hash_secret(token),
        title=request.title,
        runs=chosen,
        document=request.document.stored(),
        names=request.names,
        created_at=now,
        expires_at=now + timedelta(days=request.expires_in_days),
    )
    repository.add(session, share)
    return share, token


def revoke(session: Session, share_id: str, principal: Principal) -> None:
    """Revoke a link: one's own, or as an admin any.

    Raises:
        NotFound: there is no such link that the user may see.
    """
    share = repository.get(session, share_id)
    if share is None or (share.owner_id != principal.id and principal.role != Role.ADMIN):
        raise NotFound(f"share {share_id} does not exist, or is another user's")
    repository.remove(session, share)


def read_shared(session: Session, token: str) -> str | None:
    """The page behind a link; None if there is none, or all its runs are deleted."""
    share = repository.of_token(session, hash_secret(token))
    if share is None:
        return None
    now = database_now(session)
    existing = repository.existing_ids(session, share.runs)
    pages = caches_of(session)[_PAGES]
    kept = pages.known([share.id]).get(share.id)
    if kept is not None and kept.runs == existing and kept.at <= now < kept.at + timedelta(seconds=KEPT_S):
        return kept.content
    document, _ = read(share.document)
    page = page_of(session, Shown(share.title, share.runs, document, share.names, now))
    if page is None:
        return None
    content = to_html(page, is_served=True)
    pages.put({share.id: _Kept(now, existing, content)})
    return content


def freeze(session: Session, request: FrozenRequest) -> str:
    """The page as one file, which needs no server.

    Raises:
        Invalid: no run matches, or too many.
    """
    chosen = _chosen(session, request)
    shown = Shown(request.title, chosen, request.document, request.names, database_now(session))
    page = page_of(session, shown)
    assert page is not None  # its runs exist
    return to_html(page, is_served=False)


def _chosen(session: Session, request: FrozenRequest) -> list[str]:
    """Ids of the runs of a document, in the order in which they get their styles.

    Raises:
        Invalid: no run matches, or too many.
    """
    document = request.document
    if document.runs:
        existing: list[Run] = repository.existing_runs(session, document.runs)
        if not existing:
            raise Invalid.field("document.runs", "none of these runs exists: choose others")
        return [run.id for run in existing]
    is_list = document.list == "alone"
    node = listing.build_filter(
        states=_STATES[document.state] if is_list else (),
        algorithms=[],
        environments=[],
        tags=[],
        group=None,
        project=request.project if is_list else None,
        # What is compared says in its filter which runs are archived.
        archived=document.archived if is_list else (None if "archived" in document.filter else False),
        search=None,
        filter_text=document.filter,
    )
    listing.check_compared(session, node)
    if request.groups and document.grouping is not None:
        ids = run_groups.runs_of(session, node, document.grouping, request.groups)
        n = len(ids)
    else:
        ids = runs.ids(session, node, limit=MAX_RUNS + 1)
        n = len(ids) if len(ids) <= MAX_RUNS else runs.count(session, node)
    if not ids:
        raise Invalid.field("document.filter", "no run matches: choose runs, or another filter")
    if len(ids) > MAX_RUNS:
        raise Invalid.field(
            "document.filter",
            f"{n:,} runs match; a page shows at most {MAX_RUNS}: choose some, or a narrower filter",
        )
    return ids
