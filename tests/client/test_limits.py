"""The client's table of limits is the server's: what the client accepts is never refused for its size."""

from types import ModuleType
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

import callboard
from backend.db import alert, media
from backend.external import contents, files, schemas
from backend.runs.runs import external_spec, script_provenance
from backend.specs import events, run_fields
from backend.statistics import histograms
from callboard import limits
from callboard.names import is_project, project_of
from tests.client.support import NOBODY, Proxy, Target
from workers.engine.training import uploaded_video


def bound(model: Any, field: str, keyword: str) -> Any:
    """A bound of a field in the JSON Schema of a model."""
    schema = model.model_json_schema()["properties"][field]
    return next(part[keyword] for part in (schema, *schema.get("anyOf", ())) if keyword in part)


def server() -> dict[str, Any]:
    """What the server declares, by the client's names."""
    return {
        "MAX_NAME": run_fields.MAX_NAME,
        "MAX_GROUP": run_fields.MAX_GROUP,
        "MAX_PROJECT": run_fields.MAX_PROJECT,
        "MAX_ALGORITHM": run_fields.MAX_ALGORITHM,
        "MAX_ENVIRONMENT": run_fields.MAX_ENVIRONMENT,
        "MAX_NOTES": run_fields.MAX_NOTES,
        "MAX_TAG": run_fields.MAX_TAG,
        "MAX_TAGS": run_fields.MAX_TAGS,
        "MAX_SEED": run_fields.MAX_EXTERNAL_SEED,
        "MAX_CONFIG_FIELDS": external_spec.MAX_SETTINGS,
        "MAX_CONFIG_BYTES": external_spec.MAX_CONFIG_BYTES,
        "MAX_DETAILS_BYTES": external_spec.MAX_DETAILS_BYTES,
        "MAX_SETTING_CHARACTERS": external_spec.MAX_SETTING_NAME,
        "MAX_CONFIG_TEXT": external_spec.MAX_SETTING_TEXT,
        "MAX_CONFIG_LIST": external_spec.MAX_SETTING_ITEMS,
        "MAX_METRIC_CHARACTERS": schemas.MAX_METRIC,
        "MAX_STEPS": schemas.MAX_STEPS,
        "MAX_MESSAGE_CHARACTERS": events.MAX_TEXT,
        "MAX_ALERT_TITLE": alert.MAX_TITLE,
        "MAX_ALERT_TEXT": alert.MAX_ALERT_TEXT,
        "MAX_REASON_CHARACTERS": bound(schemas.Heartbeat, "reason", "maxLength"),
        "LEVELS": get_args(schemas.SentLine.model_fields["level"].annotation),
        "MAX_POINTS": schemas.MAX_ROWS,
        "MAX_EPISODES": schemas.MAX_ROWS // 2,
        "MAX_LINES": schemas.MAX_LINES,
        "MAX_HISTOGRAMS": schemas.MAX_HISTOGRAMS,
        "MAX_BINS": histograms.MAX_BINS,
        "MAX_MEDIA_BYTES": schemas.MAX_MEDIA_BYTES,
        "MAX_IMAGE_PIXELS": contents.MAX_IMAGE_PIXELS,
        "MAX_TABLE_ROWS": contents.MAX_TABLE_ROWS,
        "MAX_TABLE_COLUMNS": contents.MAX_TABLE_COLUMNS,
        "MAX_CELL": contents.MAX_CELL,
        "MAX_COLUMN": contents.MAX_COLUMN,
        "MAX_CAPTION": media.MAX_CAPTION,
        "MAX_ARGUMENTS": script_provenance.MAX_ARGUMENTS,
        "MAX_ARGUMENT_CHARACTERS": script_provenance.MAX_ARGUMENT_CHARACTERS,
        "MAX_PACKAGES": script_provenance.MAX_PACKAGES,
        "MAX_DIFF_BYTES": script_provenance.MAX_DIFF_BYTES,
        "MAX_OUTPUT_CHARACTERS": script_provenance.MAX_OUTPUT_CHARACTERS,
        "MAX_FILE_BYTES": schemas.MAX_UPLOAD_BYTES,
        "MAX_VIDEO_BYTES": files.MAX_VIDEO_BYTES,
        "MAX_FPS": bound(schemas.VideoUpload, "fps", "maximum"),
        "SIDE_PIXELS": (uploaded_video.MIN_SIDE_PIXELS, uploaded_video.MAX_SIDE_PIXELS),
        "MAX_FRAMES": uploaded_video.MAX_FRAMES,
    }


def entries(module: ModuleType) -> dict[str, Any]:
    """The constants of a module."""
    return {name: value for name, value in vars(module).items() if name.isupper()}


def test_every_limit_of_the_client_is_that_of_the_server() -> None:
    assert entries(limits) == server()


@given(st.text(max_size=100))
@example("/Users/ada/ppo")
@example(' . "a b" ')
def test_name_of_a_project_is_one_for_the_server(given: str) -> None:
    accepted: TypeAdapter[str] = TypeAdapter(run_fields.ProjectName)

    def is_accepted(name: str) -> bool:
        try:
            accepted.validate_python(name)
        except ValidationError:
            return False
        return True

    assert is_project(given) == is_accepted(given)
    name = project_of(given)
    assert name is None or is_accepted(name)


@pytest.mark.service
@pytest.mark.parametrize("is_reachable", [True, False])
def test_what_the_client_accepts_at_its_limits_is_stored(
    target: Target, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, is_reachable: bool
) -> None:
    monkeypatch.setattr("callboard.background.FIRST_RETRY_S", 0.01)
    create: dict[str, Any] = {
        "name": "\N{SNOWMAN}" * limits.MAX_NAME,
        "algorithm": "a" * limits.MAX_ALGORITHM,
        "environment": "e" * limits.MAX_ENVIRONMENT,
        "seed": limits.MAX_SEED,
        "project": "p" * limits.MAX_PROJECT,
        "group": "g" * limits.MAX_GROUP,
        "tags": [f"{at:02}" + "t" * (limits.MAX_TAG - 2) for at in range(limits.MAX_TAGS)],
        "notes": "n" * limits.MAX_NOTES,
        "config": {
            "s" * 300: "x" * 3_000,
            "list": ["y"] * limits.MAX_CONFIG_LIST,
            "long": ["y"] * (limits.MAX_CONFIG_LIST + 1),
            "large": 2**70,
            "seed": 2**63 - 1,
        }
        | {f"f{at}": at for at in range(limits.MAX_CONFIG_FIELDS - 5)},
    }
    url = proxy.url if is_reachable else NOBODY
    with callboard.init(**create, url=url) as run:
        run.log({f"a/{'m' * (limits.MAX_METRIC_CHARACTERS - 10)}": 1.0}, agent_steps=limits.MAX_STEPS)
        run.episode(1.0, limits.MAX_STEPS)
        run.text("t" * 2 * limits.MAX_MESSAGE_CHARACTERS, agent_steps=limits.MAX_STEPS)
        run.close("failed", "r" * 2 * limits.MAX_REASON_CHARACTERS)
    assert run.n_dropped == 0
    if not is_reachable:
        manifest = run._spool.folder / "run.json"  # noqa: SLF001
        manifest.write_text(manifest.read_text("utf-8").replace(NOBODY, proxy.url), "utf-8")
        done = callboard.sync(token=None)
        assert (done.n_remaining, done.refused, done.problems) == (0, [], [])
    [stored] = target.runs()
    assert (stored["seed"], stored["state"]) == (limits.MAX_SEED, "failed")
    assert len(stored["spec"]["config"]) == limits.MAX_CONFIG_FIELDS
