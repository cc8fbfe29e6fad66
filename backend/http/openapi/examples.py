"""Examples in the OpenAPI document. Those of response bodies are built from the examples of their parts."""

from typing import Any

REFERENCE = "#/components/schemas/"
_MAX_DEPTH = 8

_STOP = {"agent_steps": 10_000_000}
_START_SET = {
    "name": "pong",
    "version": 1,
    "sha256": "c67ae54abb5de7bd0c94e6f66de055b613cdc65f8b4cd9ced5cad2ec55eb674d",
    "content": {
        "format": 1,
        "environment": "ALE/Pong-v5",
        "source": "agent",
        "n_people": 0,
        "rom_md5": "60e0ea3cbe0913d39803477945e9e5ec",
        "ale_py": "0.12.1",
        "games": [{"seed": 7, "environment_config": {"noop_max": 30}, "actions": "eNpjYGJmYmBkQCIBAPkAGQ=="}],
        "points": [
            {
                "game": 0,
                "decision": 12,
                "score": -1.0,
                "frames": 63,
                "ram_sha256": "4" * 64,
                "screen_sha256": "9" * 64,
            }
        ],
    },
}

EXAMPLES: dict[str, Any] = {
    "NamesRequest": {"runs": ["01JD3QZ6W9K0Y5T8H2V4B7N1XC"], "beside": ["algorithm"]},
    "RunFields": {
        "algorithm": "paac",
        "environment": "ALE/Breakout-v5",
        "config": {"n_w": 2},
        "stop": _STOP,
        "seeds": [0, 1, 2],
        "tags": ["baseline"],
    },
    "CommandFields": {"command": "train", "config": {"learning_rate": 0.001}, "seeds": [0, 1, 2]},
    "ExternalFields": {
        "origin": "external",
        "algorithm": "my_ppo",
        "environment": "ALE/Pong-v5",
        "config": {"learning_rate": 0.00025, "n_envs": 8},
        "seed": 1,
    },
    "SweepSpec": {
        "name": "learning rate",
        "run": {"algorithm": "paac", "environment": "ALE/Breakout-v5", "stop": {"agent_steps": 500_000}},
        "space": {
            "config.learning_rate": {"distribution": "log_uniform", "low": 0.0001, "high": 0.01},
            "config.beta": {"values": [0.01, 0.02]},
        },
        "sampler": "random",
        "n_configurations": 12,
        "max_seeds": 8,
    },
    "StudyRequest": {"item": "a3c-figure-2", "scale": "minutes"},
    "StepNoteRequest": {"agent_steps": 400_000, "text": "Entropy falls from here on."},
    "StepNoteChange": {"text": "Entropy falls from here on, with beta halved."},
    "StudySource": {"sweep": "01JD3R4T6V8X0Z2B4D6F8H0K2M"},
    "ScriptReport": {"run": "01JZZZZZZZZZZZZZZZZZZZZZZZ", "state": "finished"},
    "StudyExtension": {"draws": 17},
    "StudySpec": {
        "name": "learning rates",
        "arms": [{"label": "PAAC", "algorithm": "paac"}, {"label": "A3C", "algorithm": "a3c"}],
        "environments": ["CartPole-v1", "Acrobot-v1"],
        "draws": {
            "n": 12,
            "space": {"config.learning_rate": {"distribution": "log_uniform", "low": 0.0001, "high": 0.01}},
        },
        "run": {"stop": {"agent_steps": 20_000}},
        "figures": [
            {
                "id": "scores",
                "title": "Score by learning rate",
                "kind": "scatter",
                "setting": "config.learning_rate",
            }
        ],
    },
    "ExperimentChanges": {"concurrency": 4},
    "SweepExtension": {"max_seeds": 12, "values": {"config.beta": [0.005]}},
    "Heartbeat": {"state": "finished", "reason": "reached 10,000,000 agent steps"},
    "PointsBatch": {
        "source": "01JD3QZ6W9K0Y5T8H2V4B7N1XC",
        "sequence": 1,
        "series": [
            {
                "metric": "loss/policy",
                "agent_steps": [1_000, 2_000],
                "wall_time_s": [0.8, 1.6],
                "value": [0.31, 0.29],
            }
        ],
    },
    "EpisodesBatch": {
        "source": "01JD3QZ6W9K0Y5T8H2V4B7N1XC",
        "sequence": 2,
        "episodes": [{"agent_steps": 1_733, "wall_time_s": 1.4, "return": 20.0, "length": 1_733}],
    },
    "HistogramsBatch": {
        "source": "01JD3QZ6W9K0Y5T8H2V4B7N1XC",
        "sequence": 3,
        "histograms": [
            {
                "metric": "policy/actions",
                "agent_steps": 1_000,
                "wall_time_s": 1.4,
                "edges": [-0.5, 0.5, 1.5],
                "counts": [412, 588],
            }
        ],
    },
    "LogBatch": {
        "source": "01JD3QZ6W9K0Y5T8H2V4B7N1XC",
        "sequence": 3,
        "lines": [{"time": "2026-01-31T10:00:00Z", "level": "info", "message": "a new phase"}],
    },
    "ProvenanceBatch": {
        "source": "01JD3QZ6W9K0Y5T8H2V4B7N1XC",
        "sequence": 5,
        "provenance": {
            "host": "lab-3",
            "command": ["python", "train.py", "--token=***"],
            "python": "3.11.7",
            "packages": {"torch": "2.9.0"},
            "commit": "0123456789abcdef0123456789abcdef01234567",
            "dirty": False,
            "variables": {"RANK": "0"},
        },
        "output": "step 1,000\n",
    },
    "ConfigBatch": {
        "source": "01JD3QZ6W9K0Y5T8H2V4B7N1XC",
        "sequence": 3,
        "config": {"learning_rate": 0.00025, "seed": 1},
    },
    "CheckpointUpload": {
        "source": "01JD3QZ6W9K0Y5T8H2V4B7N1XC",
        "sequence": 4,
        "upload": "01JD3R2M5N7P9Q1S3T5V7W9XYZ",
        "size_bytes": 1_048_576,
        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "suffix": ".zip",
        "agent_steps": 100_000,
        "wall_time_s": 812.5,
        "score": 20.0,
    },
    "VideoUpload": {
        "source": "01JD3QZ6W9K0Y5T8H2V4B7N1XC",
        "sequence": 5,
        "upload": "01JD3R2M5N7P9Q1S3T5V7W9XYW",
        "size_bytes": 2_097_152,
        "sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        "agent_steps": 100_000,
        "wall_time_s": 812.5,
        "form": "file",
    },
    "MediaUpload": {
        "source": "01JD3QZ6W9K0Y5T8H2V4B7N1XC",
        "sequence": 6,
        "upload": "01JD3R2M5N7P9Q1S3T5V7W9XYW",
        "size_bytes": 2_107,
        "sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        "agent_steps": 100_000,
        "wall_time_s": 812.5,
        "kind": "image",
        "metric": "observation",
    },
    "RunChanges": {"name": "PAAC, learning rate halved", "tags": ["baseline"], "priority": 10},
    "ForkRequest": {"config": {"learning_rate": 0.0112}, "stop": _STOP},
    "ResumeRequest": {"stop": {"agent_steps": 20_000_000}, "annealing": "extend"},
    "ArchiveRequest": {"archived": True},
    "MoveRequest": {"after": "01JD3QZ6W9K0Y5T8H2V4B7N1XC"},
    "BulkRequest": {"action": "stop", "filter": "algorithm=paac state=running", "dry_run": True},
    "EvaluationRequest": {"protocol": "noop_starts", "episodes": 30, "seed": 1},
    "RandomEvaluationRequest": {
        "environment": "ALE/Pong-v5",
        "protocol": "noop_starts_5min",
        "episodes": 30,
        "seed": 1,
        "rate": "10_hz",
    },
    "BranchRequest": {
        "episode": "01JD3QZ6W9K0Y5T8H2V4B7N1XC",
        "decision": 240,
        "continuations": 32,
        "horizon": 500,
    },
    "StartSetRequest": {"name": "pong", "run": "01JD3QZ6W9K0Y5T8H2V4B7N1XC", "points": 100},
    "StartSetFile": _START_SET,
    "StartSetImport": {"name": "pong", "file": _START_SET},
    "SettingsRequest": {"config": {"learning_rate": 0.0056}},
    "LoginRequest": {"name": "owner", "password": "correct horse battery"},
    "PasswordRequest": {"current": "correct horse battery", "new": "staple battery horse"},
    "UserRequest": {"name": "ada", "role": "operator", "password": "correct horse battery"},
    "UserChanges": {"role": "viewer"},
    "PlayRequest": {"environment": "ALE/Breakout-v5", "every_frame": False, "scripted": True},
    "TokenRequest": {"name": "nightly sweep", "role": "operator", "expires_in_days": 90},
    "ProblemDocument": {
        "type": "about:blank",
        "title": "Unprocessable Content",
        "status": 422,
        "detail": "config.n_e: must be at least 1",
        "errors": [{"field": "config.n_e", "message": "must be at least 1"}],
    },
    "RenderingPending": {"job": "01JD3QZ6W9K0Y5T8H2V4B7N1XC", "state": "queued"},
}
"""Schema -> an example that it validates."""


def describe(document: dict[str, Any]) -> None:
    """Give each schema of `EXAMPLES`, and each JSON response of an operation, its example."""
    schemas = document["components"]["schemas"]
    for name, example in EXAMPLES.items():
        schemas[name]["examples"] = [example]
    for path in document["paths"].values():
        for operation in path.values():
            for response in operation["responses"].values():
                content = response.get("content", {}).get("application/json", {})
                if content.get("schema"):
                    example = example_of(content["schema"], schemas)
                    # Linters read an object with a key `default` as a schema.
                    if not (isinstance(example, dict) and "default" in example):
                        content["example"] = example


def example_of(schema: dict[str, Any], schemas: dict[str, Any], depth: int = 0) -> Any:
    """A value that the schema allows: its own example, constant or default; null if it may be null; else made
    of the examples of its parts.

    Args:
        schema: schema of any value of the document.
        schemas: the document's schemas by name, for references.
        depth: the depth of this schema; arrays that are too deep are empty.
    """
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].removeprefix(REFERENCE)], schemas, depth + 1)
    for stated in ("examples", "enum"):
        if stated in schema:
            return schema[stated][0]
    if "const" in schema:
        return schema["const"]
    if schema.get("default") is not None:
        return schema["default"]
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        optional = any(branch.get("type") == "null" for branch in branches)
        return None if optional else example_of(branches[0], schemas, depth)
    kind = schema.get("type")
    if kind == "object":
        return {
            name: example_of(part, schemas, depth + 1) for name, part in schema.get("properties", {}).items()
        }
    if kind == "array":
        return [example_of(schema["items"], schemas, depth + 1)] if depth <= _MAX_DEPTH else []
    if schema.get("format") == "date-time":
        return "2026-11-22T10:04:00Z"
    return {"integer": 1, "number": 0.5, "boolean": True, "string": "text"}.get(kind or "")
