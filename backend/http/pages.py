"""What the requests of every resource share.

Apart from `dependencies`, which hold the state of the application: these are declarations alone.
"""

from typing import Annotated

from fastapi import Path, Query

from backend.specs.fields import ULID

Ulid = Annotated[str, Path(pattern=ULID)]
"""An id in an address."""
RunId = Annotated[str, Path(pattern=ULID, description="Id of the run.")]

Limit = Annotated[int, Query(ge=1, le=1_000, description="Maximum number of items.")]
Cursor = Annotated[str | None, Query(max_length=2_000, description="`next_cursor` of the previous page.")]

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods of requests that change nothing."""

HEALTH_PATH = "/healthz"
"""Asked every few seconds by whoever supervises the process."""
