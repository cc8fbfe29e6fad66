"""Everything of a study as one folder: figures, data, settings, commands and versions."""

import csv
import io
import json
import zipfile
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from backend import __version__
from backend.db import Experiment, ExperimentCell, Run
from backend.drawing.cells import as_cell
from backend.drawing.export_script import matplotlib_script
from backend.drawing.export_series import as_csv, printable
from backend.experiments.cells import repository as study_cells
from backend.experiments.definitions import DEFINITIONS
from backend.experiments.experiments import repository
from backend.experiments.figures import service as figures
from backend.experiments.figures.highs import training_highs
from backend.experiments.figures.kind import StudyDrawing
from backend.experiments.figures.table_files import table_csv, table_latex
from backend.experiments.specs.study import StudySpec
from backend.specs.run import in_declared_order
from backend.statistics.members import (
    WINDOW_EPISODES,
    EvaluationScore,
    evaluation_history,
)

_CELL = (
    "number", "arm", "environment", "draw", "seed", "run", "state", "reused", "changed", "training_score",
    "last_evaluation", "best_parameters", "agent_steps", "training_time_s",
)  # fmt: skip
_SCORE = ("run", "source", "agent_steps", "training_time_s", "score", "episodes")
EXPORTED_PX = 960
"""The width for which figures in files are laid out."""


def archive(session: Session, study: Experiment, spec: StudySpec) -> bytes:
    """A zip file with a folder of the study's name."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as folder:
        for name, text in _files(session, study, spec).items():
            folder.writestr(f"study-{study.id}/{name}", text)
    return content.getvalue()


def _files(session: Session, study: Experiment, spec: StudySpec) -> dict[str, str]:
    """The text of each file, by name."""
    rows = repository.all_cells(session, study.id)
    evaluations = study_cells.evaluations(session, study.id)
    drawn = [
        figures.build_figure(session, study, spec, figure.id, theme="light", width_px=EXPORTED_PX)
        for figure in spec.figures
    ]
    files = {
        "README.md": _readme(study, spec, drawn),
        "study.json": spec.model_dump_json(indent=2),
        "runs.csv": _runs(
            spec,
            rows,
            study_cells.changed_runs(session, [study.id]),
            _last_scores(session, study, evaluations),
        ),
        "scores.csv": _scores(session, rows, evaluations),
        "specs.jsonl": "".join(
            json.dumps({"run": run.id} | in_declared_order(run.spec)) + "\n"
            for _, run in rows
            if run is not None
        ),
        "versions.json": json.dumps(_versions(session, rows), indent=2),
    }
    for result in drawn:
        name = "figure-runs" if result.spec.id == "runs" else result.spec.id
        if result.figure is not None:
            files[f"{name}.csv"] = as_csv(result.figure)
            files[f"{name}.py"] = matplotlib_script(result.figure, result.text)
        if result.table is not None:
            files[f"{name}.csv"] = table_csv(result.table)
            files[f"{name}.tex"] = table_latex(
                result.table, result.spec.id, f"{result.spec.title}. {result.text}"
            )
    return files


def _readme(study: Experiment, spec: StudySpec, drawn: Sequence[StudyDrawing]) -> str:
    lines = [f"# {printable(study.name)}", ""]
    if study.definition:
        lines += [f"Made from `{study.definition}` at the scale {study.scale}.", ""]
        lines += _claims(study.definition)
    if spec.differs:
        lines += ["What differs from the paper, as the study was started:", ""]
        lines += [*(f"- {printable(line)}" for line in spec.differs), ""]
    for result in drawn:
        lines += [f"## {printable(result.spec.title)}", "", f"{result.caption}.", "", result.finding, ""]
    lines += [
        "## Files",
        "",
        "- `study.json`: the study; `callboard studies start --file study.json` starts it again.",
        "- `runs.csv`: its runs, with the mean returns of their last 100 training episodes, of their last "
        "evaluation and of their best parameters, evaluated again. They count if the run is finished and was "
        "not changed after its start. `specs.jsonl`: their settings, defaults included.",
        "- `scores.csv`: when each run reached its scores, in agent steps and in training time, evaluation "
        "excluded: its evaluations, and the means of 100 training episodes that exceed all before, with the "
        "last one.",
        "- `versions.json`: what trained them.",
        "- A CSV file for each figure or table; a script that redraws each figure; each table as LaTeX.",
        "",
        f"Written by Callboard {__version__}.",
        "",
    ]
    return "\n".join(lines)


def _claims(definition_id: str) -> list[str]:
    """The paper of a definition, and what each of its figures and tables claims; empty if it is not here."""
    if definition_id not in DEFINITIONS:
        return []
    paper, definition = DEFINITIONS[definition_id]
    claims = [f"- {item.label}, {item.title}: {item.claim}" for item in definition.items]
    return [f"{paper.authors} ({paper.year}). {paper.title}.", "", *claims, ""]


def _last_scores(
    session: Session, study: Experiment, evaluations: Mapping[str, Sequence[EvaluationScore]]
) -> dict[str, tuple[float | str, float | str]]:
    """Mean returns of each run's last evaluation, the first at its agent step, and of the evaluation of its
    best parameters at the end; empty without one."""
    histories = {run_id: evaluation_history(of_run) for run_id, of_run in evaluations.items()}
    last = {run_id: float(known.scores[-1]) for run_id, known in histories.items() if len(known.scores)}
    kept = {
        run_id: of_run[-1].mean_return for run_id, of_run in study_cells.best_kept(session, study.id).items()
    }
    return {run_id: (last.get(run_id, ""), kept.get(run_id, "")) for run_id in last.keys() | kept.keys()}


def _scores(
    session: Session,
    rows: Sequence[tuple[ExperimentCell, Run | None]],
    evaluations: Mapping[str, Sequence[EvaluationScore]],
) -> str:
    """The scores of each run over time: every rule of figures gives the same from these as from all."""
    runs = [run for _, run in rows if run is not None]
    training = training_highs(session, {run.id: run.revision for run in runs})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_SCORE)
    for run in runs:
        known = training[run.id]
        columns = known.agent_steps, known.wall_time_s, known.scores, known.trusted
        for steps, seconds, score, is_whole in zip(*columns, strict=True):
            n_episodes = WINDOW_EPISODES if is_whole else ""
            writer.writerow([run.id, "training", int(steps), float(seconds), float(score), n_episodes])
        writer.writerows(
            [run.id, "evaluation", e.agent_steps, e.wall_time_s, e.mean_return, e.n_episodes]
            for e in evaluations.get(run.id, ())
        )
    return text.getvalue()


def _runs(
    spec: StudySpec,
    rows: Sequence[tuple[ExperimentCell, Run | None]],
    changed: Collection[str],
    scores: Mapping[str, tuple[float | str, float | str]],
) -> str:
    paths = list(spec.draws.space)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_CELL, *paths])
    for cell, run in rows:
        writer.writerow(
            [
                cell.number,
                as_cell(printable(spec.label_of(cell.arm))),
                cell.environment,
                cell.draw,
                cell.seed,
                run.id if run else "",
                run.state if run else "",
                cell.reused,
                run is not None and run.id in changed,
                run.score if run and run.score is not None else "",
                *(scores[run.id] if run and run.id in scores else ("", "")),
                run.agent_steps if run else "",
                run.wall_time_s if run else "",
                *(cell.settings.get(path, "") for path in paths),
            ]
        )
    return text.getvalue()


def _versions(session: Session, rows: Sequence[tuple[ExperimentCell, Run | None]]) -> dict[str, Any]:
    """The provenances of the runs' latest attempts, each once with the number of its runs."""
    of_runs = repository.provenances(session, [run.id for _, run in rows if run is not None])
    counted: dict[str, dict[str, Any]] = {}
    for provenance in of_runs.values():
        known: Mapping[str, Any] = {
            name: provenance.get(name)
            for name in ("version", "commit", "dirty", "packages", "processor", "cpu_count", "gpus")
        }
        entry = counted.setdefault(json.dumps(known, sort_keys=True), {**known, "runs": 0})
        entry["runs"] += 1
    return {"callboard": __version__, "engines": list(counted.values())}
