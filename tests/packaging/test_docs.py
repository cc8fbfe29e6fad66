"""The documentation: the site is whole, and what the pages name exists."""

import ast
import inspect
import json
import re
import shlex
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click
import pytest
import typer
from pydantic import BaseModel

import callboard
from backend.access.users.schemas import UserChanges
from backend.analysis.shares.schemas import FrozenRequest
from backend.experiments.specs.sweep import SweepSpec
from backend.experiments.studies.schemas import StudyRequest, StudySource
from backend.external.schemas import (
    CheckpointUpload,
    EpisodesBatch,
    HistogramsBatch,
    MediaUpload,
    PointsBatch,
    ProvenanceBatch,
    VideoUpload,
)
from backend.runs.evaluations.schemas import RandomEvaluationRequest
from backend.runs.runs.external_spec import ExternalFields
from backend.runs.runs.grid import requested_specs
from backend.runs.runs.schemas import CommandFields, RunFields
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.custom import read_custom_environments
from backend.specs.host_commands import read_commands
from backend.upkeep.retention.policy import InstallationPolicy
from callboard_cli.main import app

ROOT = Path(__file__).parents[2]
SITE = ROOT / "site"
"""As `make docs` builds it, which fails at a broken link: `make test` and `make test-long` do first."""
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^( *)```(\w+)([^\n]*)\n(.*?)^\1```", re.M | re.S)
PATH = re.compile(r"`((?:\.?[\w-]+/)+[\w.-]*)`")
PLACES = ("alembic", "backend", "callboard_environments", "docs", "examples", "frontend", "tests", "workers")
PACKAGES = (*PLACES, "callboard", "callboard_algorithms")


def blocks(*languages: str) -> Iterator[tuple[str, str, str]]:
    """Page, what follows the language, and text of each code block."""
    for page in PAGES:
        for _, language, about, text in BLOCK.findall(page.read_text("utf-8")):
            if language in languages:
                yield page.name, about.strip(), textwrap.dedent(text)


@pytest.mark.service  # no unit: `make quick` builds no documentation
def test_site_has_all_that_it_refers_to() -> None:
    reference = (SITE / "reference" / "cli.html").read_text("utf-8")
    assert "callboard train" in reference
    assert "/runs/{run_id}/fork" in (SITE / "reference" / "rest.html").read_text("utf-8")
    pages = {path.relative_to(SITE).as_posix(): path.read_text("utf-8") for path in SITE.rglob("*.html")}
    assert {name for name, text in pages.items() if "<script>" in text} == set(), (
        "the policy allows no such script"
    )
    entries = json.loads((ROOT / "frontend/src/lib/glossary.json").read_text("utf-8"))
    assert {entry["page"] for entry in entries.values()} - set(pages) == set()
    algorithms = (SITE / "reference" / "algorithms.html").read_text("utf-8")
    assert all(f'id="{name}"' in algorithms for name in ALGORITHMS)
    settings = (SITE / "reference" / "settings.html").read_text("utf-8")
    named = {name for page in PAGES for name in re.findall(r"`(CALLBOARD_[A-Z_]+)", page.read_text("utf-8"))}
    assert {name for name in named if name not in settings} == {"CALLBOARD_RUN", "CALLBOARD_TEST_PATIENCE"}
    glossary = (SITE / "reference" / "glossary.html").read_text("utf-8")
    assert {id for id in ALGORITHMS if f'id="{id}"' not in glossary} == set()
    assert "(guides/agents.html): A checkpoint resumes a run" in (SITE / "llms.txt").read_text("utf-8")
    assert "`compare_runs(runs, filter, best_groups, score)`" in (SITE / "skill/SKILL.md").read_text("utf-8")
    assert "Racing-Slow-v0" in (SITE / "reference" / "environments.html").read_text("utf-8")


def test_files_and_folders_that_pages_name_exist() -> None:
    written = {about.partition("=")[2] for _, about, _ in blocks("python") if about.startswith("file=")}
    missing = {
        (page.name, path)
        for page in PAGES
        for path in PATH.findall(page.read_text("utf-8"))
        if path.split("/")[0] in PLACES and not (ROOT / path).exists() and path not in written
    }
    # Built, not kept; of former versions.
    assert {link for link in missing if link[0] not in ("CHANGELOG.md", "RESULTS.md")} == set()


def lines_of_code() -> Iterator[tuple[str, str]]:
    """Page and line of each command in a block or between backticks."""
    for page, _, text in blocks("sh"):
        joined = re.sub(r"-d '[^']*'", lambda body: body[0].replace("\n", " "), text)
        yield from ((page, line) for line in joined.replace("\\\n", " ").splitlines())
    for path in PAGES:
        inline = re.findall(r"`((?:callboard|make) [^`\n]+)`", path.read_text("utf-8"))
        yield from ((path.name, line) for line in inline)


def test_commands_in_pages_exist_with_their_options() -> None:
    root = typer.main.get_command(app)
    checked = 0
    for page, line in lines_of_code():
        words = shlex.split(line, comments=True)
        if words[:1] == ["make"]:
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.M), (page, line)
        if words[:1] != ["callboard"] or words[1:] == [] or "|" in line:
            continue
        command: Any = root
        arguments = words[1:]
        while arguments and arguments[0] != "--help" and getattr(command, "commands", None):
            name = arguments.pop(0)
            assert name in command.commands, (page, line)
            command = command.commands[name]
        if "--" in arguments:  # a command of the reader's own follows
            arguments = arguments[: arguments.index("--")]
        known = {option for param in command.params for option in param.opts} | {"--help"}
        used = {word.partition("=")[0] for word in arguments if word.startswith("--")}
        assert used <= known, (page, line)
        _check_values(command, arguments, (page, line))
        checked += 1
    assert checked > 20


def _check_values(command: click.Command, arguments: list[str], where: tuple[str, str]) -> None:
    values = dict(pairwise(arguments))
    if "--script" in arguments:  # of any algorithm and environment
        return
    if (algorithm := values.get("--algorithm")) is not None:
        assert algorithm in ALGORITHMS or algorithm in _sample_ids(), where
        for name, value in pairwise(arguments):
            if name == "--set" and algorithm in ALGORITHMS:
                assert value.partition("=")[0] in ALGORITHMS[algorithm].config.model_fields, where
    if (environment := values.get("--environment")) is not None:
        assert environment in ENVIRONMENTS or environment.startswith("Custom/"), where


def _sample_ids() -> set[str]:
    """Ids of the algorithms that the guides' own files add."""
    return {id for _, about, text in blocks("python") if about for id in re.findall(r'\bid="(\w+)"', text)}


BODY = re.compile(r"(?:-d|--data) '(\{.*?\})'", re.S)
MODELS: dict[str, type[BaseModel]] = {
    "runs": RunFields,
    "runs/$RUN/points": PointsBatch,
    "runs/$RUN/episodes": EpisodesBatch,
    "runs/$RUN/provenance": ProvenanceBatch,
    "runs/$RUN/checkpoints": CheckpointUpload,
    "runs/$RUN/videos": VideoUpload,
    "runs/$RUN/histograms": HistogramsBatch,
    "runs/$RUN/media": MediaUpload,
    "studies": StudyRequest,
    "studies/draft": StudySource,
    "shares/frozen": FrozenRequest,
    "sweeps": SweepSpec,
    "retention/installation": InstallationPolicy,
    "users/01ARZ3NDEKTSV4RRFFQ69G5FAV": UserChanges,
    "evaluations/random": RandomEvaluationRequest,
}
"""Path below `/api/v1` -> the model of the request body."""


def test_request_bodies_in_pages_are_valid() -> None:
    checked = set()
    for page, _, text in blocks("sh"):
        for command in re.split(r"^(?=curl )", text, flags=re.M):
            # The option needs curl 7.82, and Ubuntu 22.04 has an older one.
            assert not re.match(r"curl .* --json\b", command, re.S), page
            for sample in BODY.findall(command):
                [path] = re.findall(r"/api/v1/([^\s\"?]+)", command)
                body = json.loads(sample.replace("…", 64 * "0"))  # the checksum of a file
                model = ExternalFields if body.get("origin") == "external" else MODELS[path]
                model = CommandFields if "command" in body else model
                model.model_validate(body)
                if model is RunFields:
                    assert requested_specs(body)
                run = body.get("run", body) if model in (RunFields, SweepSpec) else {}
                settings = ALGORITHMS[run["algorithm"]].config.model_fields if run else {}
                varied = {name.removeprefix("config.") for name in body.get("space", ())}
                assert {*run.get("config", {}), *varied} <= set(settings), page
                checked.add(path)
    assert checked == set(MODELS)


def test_python_samples_compile_and_import_what_exists() -> None:
    for page, about, text in blocks("python"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGES):
                names = ", ".join(alias.name for alias in node.names)
                exec(f"from {node.module} import {names}", {})
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "callboard":
                assert hasattr(callboard, node.attr), (page, ast.unparse(node))
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("callboard."):
                called = inspect.signature(resolve_name(ast.unparse(node.func)))
                assert {keyword.arg for keyword in node.keywords} <= set(called.parameters), page
        assert not about or about.startswith("file="), (page, about)


def test_algorithm_of_the_guide_overrides_what_the_base_class_has() -> None:
    namespaces: dict[str, dict[str, Any]] = {}
    for _, about, text in blocks("python"):
        if about.startswith("file="):
            exec(text, namespaces.setdefault(about.partition("=")[2], {}))
    spec = namespaces["backend/specs/algorithms/double_dqn.py"]
    method = namespaces["workers/engine/methods/dqn/double_dqn.py"]
    presets = spec["DOUBLE_DQN"].presets
    # DQN's results are not double DQN's; test_presets.py demands a text of the preset as in the paper.
    assert {preset.measured for preset in presets} == {"Not run."}
    assert method["METHOD"].learner is method["DoubleDqnLearner"]
    base = method["DqnLearner"].targets.__code__
    assert vars(method["DoubleDqnLearner"])["targets"].__code__.co_varnames[:4] == base.co_varnames[:4]


def test_toml_samples_are_files_of_custom_environments_and_of_commands(tmp_path: Path) -> None:
    samples = [(page, text) for page, _, text in blocks("toml")]
    assert "commands.md" in {page for page, _ in samples}
    for page, text in samples:
        path = tmp_path / "sample.toml"
        path.write_text(text)
        if page == "commands.md":
            assert list(read_commands(path)) == ["train"]
        else:
            assert list(read_custom_environments(path)) == ["Custom/Grid-v0"]


def test_documents_are_short_enough_to_be_read() -> None:
    text = {name: (ROOT / f"{name}.md").read_text() for name in ("README", "RESULTS", "CHANGELOG")}
    for release in re.split(r"^## ", text.pop("CHANGELOG"), flags=re.M)[1:]:
        text[f"CHANGELOG, {release.splitlines()[0]}"] = release
    most = {"README": 600, "RESULTS": 1_200}
    too_long = {name: n for name, body in text.items() if (n := len(body.split())) > most.get(name, 600)}
    assert not too_long, "words; shorten what stands there before you add to it"
