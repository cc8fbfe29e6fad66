"""Schemas of the payloads of `GET /events` in the OpenAPI document."""

from typing import Any


def _event(
    description: str, optional: dict[str, Any] | None = None, **properties: tuple[str, str]
) -> dict[str, Any]:
    """An event's schema: `optional` properties by name, and types and descriptions of those always there."""
    required = {name: {"type": kind, "description": text} for name, (kind, text) in properties.items()}
    return {
        "type": "object",
        "description": description,
        "properties": required | (optional or {}),
        "required": [*properties],
        "additionalProperties": False,
    }


EVENT_SCHEMAS: dict[str, dict[str, Any]] = {
    "RunEvent": _event(
        "A run changed.",
        optional={
            "changed": {
                "type": "array",
                "items": {"type": "string"},
                "description": "What has changed apart from the run: `series/<section>` (points of metrics "
                "of this section), `metrics` (new metrics), `episodes`, `evaluations`, `checkpoints`, "
                "`videos` (sent by a script), `step_notes`, `log`; without it, anything may have.",
            }
        },
        run=("string", "The run's id."),
        revision=("integer", "Its revision now."),
        state=("string", "Its state now, or `deleted`."),
    ),
    "HostEvent": _event("A host changed.", host=("string", "The host's id.")),
    "JobEvent": _event(
        "A job changed, such as a video, an evaluation, a branch or the verification of a start set.",
        optional={
            "run": {
                "type": "string",
                "description": "The run's id; not of a job that belongs to no run, of a start set or of a "
                "recorded game.",
            }
        },
        job=("string", "The job's id."),
        kind=("string", "What it does, such as `video`, `thumbnail` or `evaluation`."),
        state=("string", "Its state now."),
    ),
    "SweepEvent": _event(
        "A sweep changed.",
        sweep=("string", "The sweep's id."),
        revision=("integer", "Its revision now."),
        state=("string", "Its state now, or `deleted`."),
    ),
    "StudyEvent": _event(
        "A study changed.",
        study=("string", "The study's id."),
        revision=("integer", "Its revision now."),
        state=("string", "Its state now, or `deleted`."),
    ),
}
"""The payloads of `GET /events`."""
