"""Pages without names, over generated names."""

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from backend.analysis.metrics import repository as series
from backend.analysis.shares.contents import Shown, page_of
from backend.analysis.shares.page import to_html
from backend.analysis.views.document import ViewDocument
from backend.db import Run, ScriptProcess, User
from backend.db.base import new_id
from backend.db.clock import database_now
from backend.db.engine import reading, writing
from backend.platform.principals import Role
from backend.specs.events import PointsEvent
from tests.support.rows import external_request
from tests.support.service import RunningService, created_run

pytestmark = [pytest.mark.service, pytest.mark.long]

_DATA = re.compile(r'"bdata":"[^"]*"|[0-9A-HJKMNP-TV-Z]{26}')
"""Numbers of figures, and ids of runs."""

names = st.from_regex(r"[qzxj]{3}[qzxjQ_.-]{0,6}[qzxj]{2}", fullmatch=True)
places = st.sampled_from(["{}", "{}7", "a{}b", "/home/{}/x", "~{}", "_{}_", "{}.pt", "by {}, twice", "w-{}"])


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(names, min_size=7, max_size=7, unique_by=str.casefold),
    st.lists(places, min_size=8, max_size=8),
    st.sampled_from([None, "seed"]),
)
def test_page_without_names_has_none_in_any_text(
    sqlite_service: RunningService, known: list[str], forms: list[str], grouping: Any
) -> None:
    client, engine = sqlite_service.client, sqlite_service.engine
    user, host, name, other, group, project, tag = known
    texts = [form.format(known[at % 7]) for at, form in enumerate(forms)]
    metric, source = f"loss/{texts[0]}"[:100], texts[1]
    created = []
    for rate, title in ((0.1, name), (0.2, other)):
        config: dict[str, Any] = {f"option {at} {text}": text for at, text in enumerate(texts)}
        config |= {"lr": rate, "list": [texts[2], 1], "note": f"{texts[3]} {rate}"}
        request = external_request(config=config, name=title, group=group, project=project, tags=[tag])
        request |= {"algorithm": f"algo {texts[4]}"[:50], "environment": texts[5]}
        answer = client.post("/api/v1/runs", json=request)
        assume(answer.status_code == 201)  # some texts are no ids
        created.append(created_run(answer)["id"])
    steps = [10 * (at + 1) for at in range(20)]
    with writing(engine) as session:
        if not session.query(User).filter_by(name=user).count():
            now = database_now(session)
            session.add(User(id=new_id(), name=user, password_hash="", role=Role.VIEWER, created_at=now))
        for run in created:
            provenance = {"host": host, "command": ["python", texts[6]]}
            session.add(ScriptProcess(run_id=run, source=new_id(), provenance=provenance))
            points = [
                PointsEvent(
                    metric=of,
                    source=at,
                    agent_steps=steps,
                    frames=steps,
                    wall_time_s=[float(step) for step in steps],
                    episodes=steps,
                    value=[1.0] * 20,
                )
                for of in ("rollout/episode_return", metric)
                for at in ("", source)
            ]
            series.append(session, run, 1, 2, points)
            session.get_one(Run, run).error = texts[7]
    panels: list[dict[str, Any]] = [
        {"kind": "lines", "metrics": ["rollout/episode_return", metric]},
        {"kind": "scatter", "setting": "config.lr"},
        {"kind": "scatter", "setting": f"config.option 2 {texts[2]}"},
        {"kind": "scatter", "setting": "project"},
    ]
    document = ViewDocument.model_validate({"runs": created, "grouping": grouping, "panels": panels})
    with reading(engine) as session:
        shown = Shown(name, created, document, names=False, at=database_now(session))
        page = page_of(session, shown)
        assert page is not None
        text = _DATA.sub("", to_html(page, is_served=True)).casefold()
    assert [name for name in known if name.casefold() in text] == []
    assert ("lr 0.1" in text, "lr 0.2" in text, "loss/" in text) == (True, True, True)
