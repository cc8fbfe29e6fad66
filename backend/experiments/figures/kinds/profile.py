"""`profile`: the share of each arm's runs above every normalised score, over environments."""

from collections import defaultdict
from collections.abc import Iterator

from backend.drawing.figure import Figure
from backend.drawing.panels import Frame
from backend.drawing.profiles import profile_figure
from backend.experiments.figures.kind import Kind, Problem, StudyDrawing
from backend.experiments.figures.reducers import TARGETS, references_of
from backend.experiments.figures.runs import FigureRuns
from backend.experiments.specs.study import StudyFigure, StudySpec
from backend.statistics.members import last_score
from backend.statistics.profiles import TARGET, Profiles, profiles
from backend.statistics.reducers import normalise


def needs_scores(figure: StudyFigure, spec: StudySpec) -> Iterator[Problem]:
    """It is made of the normalised score of each run."""
    if figure.reduction.normalise is None:
        yield "reduction.normalise", f"is required by {figure.kind}"
    if figure.reduction.rule != "last":
        yield "reduction.rule", f"{figure.kind} is of the score of each run: use last"


def target_of(runs: FigureRuns) -> str:
    """Whose scores are 100 %."""
    return runs.figure.reduction.normalise or "human"


def profiles_of(runs: FigureRuns) -> Profiles:
    """The profile of each arm over the environments."""
    references = references_of(target_of(runs), runs.protocols)
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for member in runs.shown_members:
        reference = references.get(member.environment)
        if reference is None:
            continue
        value = normalise(last_score(member, runs.figure.reduction.source), reference)
        if value is not None:
            scores[member.arm, member.environment].append(value)
    return profiles(scores, runs.labels)


def describe_profiles(runs: FigureRuns, across: Profiles, drawing: Figure) -> StudyDrawing:
    """The drawing with its scores and optimality gaps in words."""
    n_in, n_planned = sum(profile.n_runs for profile in across.arms), runs.n_planned
    is_evaluated = runs.figure.reduction.source == "evaluations"
    source = "last evaluations" if is_evaluated else "last training scores"
    caption = (
        f"{TARGETS[target_of(runs)]}-normalised {source} of the runs, each environment with the same weight, "
        f"over the same {len(across.environments)} of {len(runs.spec.environments)} environments; "
        f"{n_in} of {n_planned} runs are in"
    )
    gaps = [f"{profile.arm} {profile.optimality_gap:.3g} %" for profile in across.arms]
    finding = f"Optimality gap: {', '.join(gaps)}." if gaps else ""
    return StudyDrawing(runs.figure, drawing, None, caption, finding, n_in, n_planned)


def _draw(runs: FigureRuns, loaded: None, frame: Frame) -> StudyDrawing:
    across = profiles_of(runs)
    target = TARGETS[target_of(runs)]
    x = f"{target[:1].upper()}{target[1:]}-normalised score (%)"
    drawing = profile_figure(across.arms, x=x, target=TARGET, frame=frame)
    return describe_profiles(runs, across, drawing)


PROFILE = Kind("profile", shape="curves", draw=_draw, problems=needs_scores)
