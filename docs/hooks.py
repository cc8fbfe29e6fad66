"""Pages of the site that are not written by hand: the reference, and the Markdown files of the root folder.

MkDocs calls the functions `on_*` while it builds.
"""

import ast
import hashlib
import inspect
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any

import click
import typer
from evidence import page as evidence
from evidence import table as _table
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

import callboard
import callboard.wandb.table as wandb_table
from backend.app import create_app
from backend.platform.settings import Settings
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from callboard import writer_table
from callboard.foreign import USED, Refused
from callboard.mcp import tools
from callboard_cli.main import app

ROOT = Path(__file__).resolve().parents[1]
PROJECT = ("RESULTS", "CHANGELOG", "CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT", "THIRD-PARTY")
"""Files of the root folder that become pages of `project/`."""

OTHER_VARIABLES = {
    "CALLBOARD_RAY_ADDRESS": (
        "Of a worker: address of the Ray cluster that Gorila runs use, instead of a local instance.",
        "",
    ),
}
"""Variables that other packages than the service read -> meaning and default."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    pages = {
        "reference/cli.md": command_line(),
        "reference/rest.md": rest(),
        "reference/python.md": python(),
        "reference/algorithms.md": algorithms(),
        "reference/environments.md": environments(),
        "reference/settings.md": settings(),
        "reference/foreign.md": foreign_names(),
        "reference/glossary.md": glossary(),
        "explanation/methods.md": methods(),
        "project/evidence.md": evidence(),
    }
    for name in PROJECT:
        pages[f"project/{name.lower()}.md"] = _move_links((ROOT / f"{name}.md").read_text("utf-8"))
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links at files of the root folder to their pages."""
    up = "../" * page.file.src_uri.count("/")
    names = "|".join(PROJECT)
    return re.sub(
        rf"\]\({up}\.\./({names})\.md", lambda match: f"]({up}project/{match[1].lower()}.md", markdown
    )


_INLINE_SCRIPT = re.compile(r"<script>(.+?)</script>", re.S)


def on_post_page(output: str, page: Any, config: MkDocsConfig) -> str:
    """Move the theme's inline scripts into files: the server's content security policy allows none.

    The theme's dialog gets a name, which screen readers need. `scheme.js` runs before anything is drawn.
    """

    def move(script: re.Match[str]) -> str:
        name = f"assets/javascripts/{hashlib.sha256(script[1].encode()).hexdigest()[:16]}.js"
        path = Path(config.site_dir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script[1], "utf-8")
        return f'<script src="{get_relative_url(name, page.url)}"></script>'

    scheme = get_relative_url("scheme.js", page.url)
    output = output.replace("</head>", f'<script src="{scheme}"></script></head>', 1)
    output = output.replace('role="dialog">', 'role="dialog" aria-label="Search">', 1)
    return _INLINE_SCRIPT.sub(move, output)


def on_post_build(config: MkDocsConfig) -> None:
    """Write the files for assistants, and remove the theme's page for unknown addresses, whose links are only
    right at the root of a server."""
    site = Path(config.site_dir)
    (site / "404.html").unlink(missing_ok=True)
    (site / "llms.txt").write_text(llms_txt(config.nav or []), "utf-8")
    (site / "skill").mkdir(exist_ok=True)
    (site / "skill/SKILL.md").write_text(skill(), "utf-8")


def llms_txt(nav: list[Any]) -> str:
    """The list of all pages for language models, as llmstxt.org has it."""
    lines = ["# Callboard", "", f"> {app.info.help}", ""]

    def add(entries: list[Any]) -> None:
        for entry in entries:
            [(title, target)] = entry.items()
            if isinstance(target, list):
                lines.extend(["", f"## {title}", ""])
                add(target)
            else:
                lines.append(f"- [{title}]({target.removesuffix('.md')}.html){_summary(target)}")

    add(nav)
    return "\n".join(lines) + "\n"


def _summary(page: str) -> str:
    """The first sentence of a page that is written by hand."""
    path = ROOT / "docs" / page
    text = path.read_text("utf-8") if path.is_file() else ""
    first = next((line for line in text.splitlines() if re.match(r"[A-Z`*]", line)), "")
    sentence = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", first).replace("**", "").split(". ")[0].rstrip(".:")
    return f": {sentence}" if sentence else ""


def skill() -> str:
    """The skill file, which an assistant loads to know how Callboard is used."""
    front = {
        "name": "callboard",
        "description": "Find, read, compare and start runs of reinforcement learning on a Callboard server. "
        "Use it when asked about runs, seeds, learning curves, scores or sweeps.",
    }
    lines = ["---", *(f"{name}: {text}" for name, text in front.items()), "---", "", "# Callboard", ""]
    lines += [tools.INSTRUCTIONS, "", "## Tools", "", "Of the MCP server `callboard mcp`, or of `/mcp`:", ""]
    for tool in (*tools.READING, *tools.WRITING):
        about = " ".join((inspect.getdoc(tool) or "").split())
        writes = " Needs `--allow-write`." if tool in tools.WRITING else ""
        _, *arguments = inspect.signature(tool).parameters
        lines.append(f"- `{tool.__name__}({', '.join(arguments)})`: {about}{writes}")
    lines += ["", "## Commands", "", "Without the tools, the same over the command line:", ""]
    for name, command in sorted(typer.main.get_command(app).commands.items()):  # type: ignore[attr-defined]
        about = (command.help or "").partition("\n")[0]
        lines.append(f"- `callboard {name}`: {about}")
    lines += ["", "All pages of the documentation: `llms.txt` beside this folder.", ""]
    return "\n".join(lines)


def _move_links(text: str) -> str:
    """A file of the root folder as a page of `project/`."""
    text = re.sub(r"\]\(docs/", "](../", text).replace("[MIT licence](LICENSE)", "MIT licence")
    names = "|".join(PROJECT)
    return re.sub(rf"\]\(({names})\.md", lambda match: f"]({match[1].lower()}.md", text)


def command_line() -> str:
    """Every command with its options, as `--help` prints them."""
    parts = ["# Command line\n\nGenerated from the commands. `--help` prints the same.\n"]
    for path, command, context in _commands(typer.main.get_command(app), "callboard"):
        with context.scope():
            help_text = command.get_help(context)
        parts.append(f"## {path}\n\n```text\n{help_text}\n```\n")
    return "\n".join(parts)


def _commands(
    command: click.Command, path: str, parent: click.Context | None = None
) -> Iterator[tuple[str, click.Command, click.Context]]:
    context = click.Context(command, info_name=path.split()[-1], parent=parent, max_content_width=100)
    if subcommands := getattr(command, "commands", {}):
        for name, subcommand in subcommands.items():
            yield from _commands(subcommand, f"{path} {name}", context)
    else:
        yield path, command, context


def foreign_names() -> str:
    """What each name and argument of the imitated packages means."""
    parts = [
        "# Calls of other libraries\n\nGenerated from the tables of the client. Each name and argument of "
        "W&B's module and of TensorBoard's `SummaryWriter` is used, or does nothing and is said once a run, "
        "with what to do instead, or ends a script before it trains. A star stands for any name, and an "
        "argument that is not listed shares its function's meaning.\n"
    ]
    tables = {"`callboard.wandb`": wandb_table.TABLE, "`callboard.SummaryWriter`": writer_table.TABLE}
    for title, table in tables.items():
        used = ", ".join(f"`{name}`" for name, use in table.items() if use == USED)
        parts.append(f"## {title}\n\nUsed: {used}.\n\n| name | is | what to do |\n|---|---|---|")
        for name, use in table.items():
            if use != USED:
                kind = "refused before training" if isinstance(use, Refused) else "said"
                parts[-1] += f"\n| `{name}` | {kind} | {_plain(use)} |"
        parts[-1] += "\n"
    return "\n".join(parts)


def rest() -> str:
    """Every operation and schema of the OpenAPI document."""
    with tempfile.TemporaryDirectory() as home:
        document = create_app(Settings(home=Path(home))).openapi()
    parts = [
        "# REST\n\nGenerated from the OpenAPI document, which a server has at `/openapi.json`, and as a page "
        "to try requests on at `/docs`. Errors are RFC 9457 problem documents.\n"
    ]
    for tag in document["tags"]:
        parts.append(f"## {tag['name']}\n\n{tag['description']}\n")
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if tag["name"] in operation["tags"]:
                    parts += _operation(method, path, operation)
    parts.append("## Schemas\n")
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts += _schema(name, schema)
    return "\n".join(parts)


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### {method.upper()} {path}\n\n{_plain(operation.get('description', ''))}\n"
    bodies = operation.get("requestBody", {}).get("content", {}).values()
    yield from (f"Request: {_type(body['schema'])}\n" for body in bodies)
    answers = [
        _type(content["schema"])
        for status, answer in operation["responses"].items()
        if status.startswith("2")
        for content in answer.get("content", {}).values()
        if content.get("schema")
    ]
    if answers:
        yield f"Response: {', '.join(dict.fromkeys(answers))}\n"
    rows = [
        (
            f"`{parameter['name']}`",
            parameter["in"],
            _type(parameter["schema"]),
            _cell(parameter["description"]),
        )
        for parameter in operation.get("parameters", [])
    ]
    if rows:
        yield _table(("parameter", "in", "type", "description"), rows)


def _schema(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"### {name}\n\n{_plain(schema.get('description', ''))}\n"
    required = schema.get("required", [])
    rows = [
        (
            f"`{field}`" + ("" if field in required else " (optional)"),
            _type(property_schema),
            _cell(property_schema["description"]),
        )
        for field, property_schema in schema.get("properties", {}).items()
    ]
    if rows:
        yield _table(("field", "type", "description"), rows)
    for example in schema.get("examples", []):
        yield f"```json\n{json.dumps(example, indent=2)}\n```\n"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if choices := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(_type(choice) for choice in choices)
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = str(schema.get("type", schema.get("const", "any")))
    return f"{kind} of {_type(schema['items'])}" if "items" in schema else kind


def python() -> str:
    """Every public name of the package `callboard`, from its docstrings."""
    parts = [
        "# Python\n\nGenerated from the docstrings of the package `callboard`, whose distribution is called "
        "`callboard-client`. [Log your own training](../guides/log.md) shows how to use it.\n"
    ]
    for name in callboard.__all__:
        public = getattr(callboard, name)
        parts.append(f"## {name}\n\n{_documented(name, public)}")
        for member, value in _members(public).items():
            function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if not member.startswith("_") and inspect.isfunction(function):
                label = member if isinstance(value, property) else f"{member}()"
                parts.append(f"### {name}.{label}\n\n{_documented(member, function)}")
    return "\n".join(parts)


def _members(public: Any) -> dict[str, Any]:
    """The members of a class, with those of bases that are not public."""
    if not inspect.isclass(public):
        return {}
    bases = [
        base
        for base in public.__mro__[:0:-1]
        if base.__module__.startswith("callboard.") and base.__name__ not in callboard.__all__
    ]
    return {name: value for base in (*bases, public) for name, value in vars(base).items()}


def _documented(name: str, member: Any) -> str:
    if isinstance(member, UnionType):
        return f"One of {', '.join(f'`{part.__name__}`' for part in member.__args__)}.\n"
    text = inspect.cleandoc(member.__doc__ or "")
    if inspect.isclass(member) and inspect.isfunction(member.__init__):
        text += f"\n\n{inspect.cleandoc(member.__init__.__doc__ or '')}"
    try:
        signature = f"{name}{inspect.signature(member)}\n\n" if callable(member) else ""
    except ValueError:
        signature = ""
    return f"```text\n{signature}{text}\n```\n"


def algorithms() -> str:
    """Every setting of every algorithm."""
    parts = [
        "# Algorithms\n\nGenerated from the specs in `backend/specs/algorithms`. Where each default "
        "comes from is in [Constants](../constants.md).\n"
    ]
    for algorithm in ALGORITHMS.values():
        parts.append(
            f"## {algorithm.id}\n\n**{algorithm.title}**. {algorithm.summary}\n\n{algorithm.paper}.\n"
        )
        parts.append(_settings_table(algorithm.config.model_json_schema()))
    return "\n".join(parts)


def environments() -> str:
    """Every environment, and the settings of every family."""
    parts = ["# Environments\n\nGenerated from the specs in `backend/specs/environments`.\n"]
    for family in dict.fromkeys(environment.family for environment in ENVIRONMENTS.values()):
        members = [environment for environment in ENVIRONMENTS.values() if environment.family == family]
        parts.append(f"## {family}\n")
        rows = [
            (f"`{environment.id}`", environment.observation, environment.actions, _cell(environment.summary))
            for environment in members
        ]
        parts.append(_table(("environment", "observation", "actions", "summary"), rows))
        for config in dict.fromkeys(environment.config for environment in members):
            if config.model_fields:
                ids = [environment.id for environment in members if environment.config is config]
                parts.append(f"Settings of `{ids[0]}`{' and others like it' if len(ids) > 1 else ''}:\n")
                parts.append(_settings_table(config.model_json_schema()))
    return "\n".join(parts)


def settings() -> str:
    """Every environment variable."""
    rows = [
        (
            f"`CALLBOARD_{name}`".upper(),
            _cell(str(field.description)),
            _default(None if field.default_factory else field.default),
        )
        for name, field in Settings.model_fields.items()
    ]
    rows += [(f"`{name}`", meaning, default) for name, (meaning, default) in OTHER_VARIABLES.items()]
    return (
        "# Installation settings\n\n"
        "Generated, mostly from `backend/platform/settings.py`. Each is an environment variable.\n\n"
        + _table(("variable", "meaning", "default"), rows)
    )


def glossary() -> str:
    """Every term that the pages explain in a popover, and every algorithm."""
    entries: dict[str, dict[str, Any]] = {
        algorithm.id: {"term": algorithm.title, "text": algorithm.summary, "page": "explanation/methods.html"}
        for algorithm in ALGORITHMS.values()
    }
    entries |= json.loads((ROOT / "frontend/src/lib/glossary.json").read_text("utf-8"))
    parts = ["# Glossary\n\nThe pages explain the same terms where they stand: press the dotted word.\n"]
    for id, entry in sorted(entries.items(), key=lambda item: item[1]["term"].lower()):
        names = ", ".join([entry["term"], *entry.get("also", ())])
        more = f"[More](../{entry['page'].removesuffix('.html')}.md)"
        parts.append(f"## {entry['term']} {{#{id}}}\n\n**{names}**. {entry['text']} {more}\n")
    return "\n".join(parts)


def methods() -> str:
    """The docstring of every module of the engine that lists its differences from a paper."""
    parts = [
        "# Methods and their differences from the papers\n\nGenerated from the modules' docstrings. "
        "Differing defaults are in [Constants](../constants.md).\n"
    ]
    for path in sorted((ROOT / "workers/engine").rglob("*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        if "Differences from the paper" in docstring:
            title, _, rest = docstring.partition("\n")
            # Markdown begins a list after an empty line only.
            listed = re.sub(r"(Differences from the papers?[^:]*:)[ \n]*", r"**\1**\n\n", rest)
            parts.append(f"## {_plain(title)}\n\n`{path.relative_to(ROOT)}`\n{_plain(listed)}\n")
    return "\n".join(parts)


def _settings_table(schema: dict[str, Any]) -> str:
    rows = []
    for name, field in schema.get("properties", {}).items():
        unit = field.get("unit") or ""
        rows.append(
            (f"`{name}`", _default(field.get("default")), _bounds(field), unit, _cell(field["description"]))
        )
    return _table(("setting", "default", "bounds", "unit", "meaning"), rows)


def _bounds(field: dict[str, Any]) -> str:
    low, above = field.get("minimum"), field.get("exclusiveMinimum")
    high, below = field.get("maximum"), field.get("exclusiveMaximum")
    start = f"above {above:g}" if above is not None else f"{low:g}" if low is not None else ""
    end = f"below {below:g}" if below is not None else f"{high:g}" if high is not None else ""
    if start and end:
        return f"{start} to {end}"
    if start:
        return start if low is None else f"at least {start}"
    return end if high is None or not end else f"at most {end}"


def _default(value: Any) -> str:
    return "" if value is None else f"`{value}`"


def _plain(text: str) -> str:
    return text.replace("<", "&lt;")


def _cell(text: str) -> str:
    return _plain(" ".join(text.split())).replace("|", "\\|")
