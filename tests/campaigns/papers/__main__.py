"""Run the papers' figures and tables at a scale, one after another: `make papers`.

At the scale minutes, all that have it; at the scale hours, those in docs/measurements/papers.md, each of
which takes up to 100 minutes of two idle cores: `make papers ARGS="--scale hours"`.

What this version has finished is skipped, whether the home has its study or the output folder its export,
and a study that was interrupted continues. So the campaign can be stopped at any time, by Ctrl-C or a kill,
and goes on with the same command. Runs that failed are tried once more in each call. The export of a study,
with its figures drawn, is written as soon as it has ended.
"""

import argparse
import csv
import io
import json
import shutil
import signal
import subprocess
import sys
import zipfile
from datetime import datetime
from pathlib import Path
from time import sleep
from typing import Any, NoReturn
from uuid import uuid4

import httpx

from backend import __version__
from backend.experiments.definitions import DEFINITIONS, study_of
from backend.experiments.experiments import study as studies
from backend.experiments.specs.study import Scale
from tests.support.installation import Installation

_NAMES = {
    "minutes": [name for name, (_, definition) in DEFINITIONS.items() if "minutes" in definition.scales],
    "hours": ["paac-figures-3-4", "a3c-figure-2", "paac-table-1", "ga3c-figure-7", "a3c-table-2"],
}
"""By scale, the definitions that are run if none are named."""
_INTERVAL_S = 2.0
_TRIES = 60
"""Of a request or of a start, `_INTERVAL_S` apart: in less, a web process that died has been restarted, and
the installation of a campaign that was killed has stopped."""
_INTERRUPTED = 130


def main() -> int:
    """Run definitions. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.papers", description=__doc__)
    parser.add_argument("--home", type=Path, default=Path.home() / ".callboard-papers")
    parser.add_argument("--output", type=Path, default=Path("papers"), help="for exports")
    parser.add_argument("--scale", choices=[*_NAMES], default="minutes")
    parser.add_argument(
        "--only", nargs="+", choices=[*DEFINITIONS], metavar="ID", help="of these definitions"
    )
    given = parser.parse_args()
    names = given.only or _NAMES[given.scale]
    if without := [name for name in names if given.scale not in DEFINITIONS[name][1].scales]:
        parser.error(f"--only: {', '.join(without)} cannot be run at the scale {given.scale}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        running = _start(given.home.resolve())
        try:
            incomplete = _run(running.log_in(), given.scale, names, given.output)
        finally:
            if running.process.poll() is None:
                running.stop()
    except KeyboardInterrupt:
        _say("Stopped. The same command goes on.")
        return _INTERRUPTED
    if incomplete:
        _say(f"With runs that did not finish: {', '.join(incomplete)}")
    return 1 if incomplete else 0


def _run(client: httpx.Client, scale: Scale, names: list[str], output: Path) -> list[str]:
    """Run these definitions. Return those with runs that did not finish."""
    incomplete = []
    for at, name in enumerate(names, 1):
        _say(f"{at} of {len(names)}: {name}")
        folder = output / (name if scale == "minutes" else f"{name}-{scale}")
        if _is_complete(folder, name, scale):
            _say(f"  {folder} has it")
            continue
        study, minutes = _ended(client, name, scale)
        if minutes is not None or not _is_written(study, folder):
            _write(client, study, folder, minutes)
        counts = ", ".join(f"{n} {state}" for state, n in study["runs"].items())
        _say(f"  {counts}; {'begun before' if minutes is None else f'{minutes:.1f} min'}")
        if _unfinished(study):
            incomplete.append(name)
    return incomplete


def _start(home: Path) -> Installation:
    """An installation in `home` that stops with this process, however that ends."""
    problem = ""
    for _ in range(_TRIES):
        try:
            running = Installation(home, prefix=("setpriv", "--pdeathsig", "TERM"), slots=2)
        except RuntimeError as error:
            problem = str(error)
        else:
            try:
                running.process.wait(1.0)
            except subprocess.TimeoutExpired:
                return running
            running.client.close()
            problem = running.output
        sleep(_INTERVAL_S)
    raise SystemExit(problem)


def _ended(client: httpx.Client, definition: str, scale: Scale) -> tuple[dict[str, Any], float | None]:
    """The study of a definition when it has ended, and how many minutes it took; None if it was started
    before."""

    def read(study_id: str) -> dict[str, Any]:
        detail: dict[str, Any] = _answer(client, "GET", f"/api/v1/studies/{study_id}").json()
        return detail

    name = f"{definition}, {scale}, {__version__}"
    listed = _answer(client, "GET", "/api/v1/studies", params={"definition": definition}).json()["items"]
    named = [study["id"] for study in listed if study["name"] == name]
    today = _experiment(definition, scale)
    study = next((study for study in map(read, named) if _runs_of(study["spec"]) == today), None)
    is_new = study is None
    if study is None:
        body = {"item": DEFINITIONS[definition][1].items[0].id, "scale": scale, "name": name}
        once = {"Idempotency-Key": str(uuid4())}
        started = _answer(client, "POST", "/api/v1/studies", json=body, headers=once)
        study = started.raise_for_status().json()
    study = _wait(client, study["id"])
    if _unfinished(study):
        _answer(client, "POST", f"/api/v1/studies/{study['id']}/retry")
        study = _wait(client, study["id"])
    first, last = (datetime.fromisoformat(study[name]) for name in ("created_at", "ended_at"))
    return study, (last - first).total_seconds() / 60 if is_new else None


def _wait(client: httpx.Client, study_id: str) -> dict[str, Any]:
    """A study when it has ended."""
    while True:
        study: dict[str, Any] = (
            _answer(client, "GET", f"/api/v1/studies/{study_id}").raise_for_status().json()
        )
        if study["state"] != "running":
            return study
        sleep(_INTERVAL_S)


def _unfinished(study: dict[str, Any]) -> int:
    unfinished: int = study["n_runs"] - study["runs"].get("finished", 0)
    return unfinished


def _answer(client: httpx.Client, method: str, path: str, **content: Any) -> httpx.Response:
    """The answer to a request, which is sent again while the web process is away."""
    problem = ""
    for _ in range(_TRIES):
        try:
            answer = client.request(method, path, **content)
        except httpx.TransportError as error:
            problem = repr(error)
        else:
            if not answer.is_server_error:
                return answer
            problem = answer.text
        sleep(_INTERVAL_S)
    raise SystemExit(f"{method} {path}: {problem}")


def _write(client: httpx.Client, study: dict[str, Any], folder: Path, minutes: float | None) -> None:
    """Write a study's export, with its figures drawn, in place of an earlier one."""
    export = _answer(client, "GET", f"/api/v1/studies/{study['id']}/export").raise_for_status()
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    with zipfile.ZipFile(io.BytesIO(export.content)) as archive:
        archive.extractall(partial)
    [files] = partial.iterdir()
    for script in sorted(files.glob("*.py")):
        subprocess.run([sys.executable, str(script)], check=True, stdout=subprocess.DEVNULL)
    readme = files / "README.md"
    head = readme.read_text("utf-8").partition("\n## Files\n")[0]
    took = "" if minutes is None else f", in {minutes:.1f} minutes on two slots"
    written = (
        f"Study {study['id']} of `make papers`, Callboard {__version__}, ended {study['ended_at']}{took}."
    )
    if n_reused := study["n_reused"]:
        written += f" Reused runs: {n_reused}."
    engines = json.loads((files / "versions.json").read_text("utf-8"))["engines"]
    lines = [head, written, "", *map(_engine_line, engines), ""]
    readme.write_text("\n".join(lines), "utf-8")
    with (files / "runs.csv").open(encoding="utf-8") as runs:
        assert sum(1 for _ in csv.reader(runs)) == study["n_runs"] + 1
    shutil.rmtree(folder, ignore_errors=True)
    files.rename(folder)
    partial.rmdir()


def _engine_line(engine: dict[str, Any]) -> str:
    """The code, hardware and packages that trained runs of a study, for its README."""
    changed = " with changes that were not committed" if engine["dirty"] else ""
    hardware = ", ".join([engine["processor"], f"{engine['cpu_count']} cores", *engine["gpus"]])
    packages = ", ".join(f"{name} {version}" for name, version in engine["packages"].items())
    return f"- Runs: {engine['runs']}; commit {engine['commit']}{changed}; {hardware}; {packages}."


def _is_complete(folder: Path, name: str, scale: Scale) -> bool:
    """Whether the folder has the export of a study of this version and of today's definition, all of whose
    runs have finished."""
    readme, table, stored = (folder / file for file in ("README.md", "runs.csv", "study.json"))
    if not (readme.exists() and table.exists() and stored.exists()):
        return False
    if _runs_of(json.loads(stored.read_text("utf-8"))) != _experiment(name, scale):
        return False
    if f"`make papers`, Callboard {__version__}, ended" not in readme.read_text("utf-8"):
        return False
    with table.open(encoding="utf-8", newline="") as runs:
        return all(run["state"] == "finished" for run in csv.DictReader(runs))


def _experiment(name: str, scale: Scale) -> dict[str, Any]:
    """What the runs of a definition are today."""
    spec = studies.resolve_presets(study_of(*DEFINITIONS[name], scale))
    return _runs_of(spec.model_dump(mode="json"))


def _runs_of(spec: dict[str, Any]) -> dict[str, Any]:
    """What of a study decides its runs: words and figures do not."""
    same = {name: spec[name] for name in ("arms", "environments", "draws", "concurrency")}
    return same | {"stop": spec["run"].get("stop")}


def _is_written(study: dict[str, Any], folder: Path) -> bool:
    """Whether the folder has this study as it has ended."""
    readme = folder / "README.md"
    written = readme.read_text("utf-8") if readme.exists() else ""
    return study["id"] in written and study["ended_at"] in written


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
