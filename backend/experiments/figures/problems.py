"""Fields of a study's figures that do not fit each other, or the study."""

from collections.abc import Iterator

from backend.experiments.figures.kind import Problem
from backend.experiments.figures.kinds import KINDS
from backend.experiments.specs.study import StudyFigure, StudySpec
from backend.specs.environments import ENVIRONMENTS

_PUBLISHED = dict.fromkeys(
    name
    for environment in ENVIRONMENTS.values()
    for score in environment.published
    for name in (score.label, f"{score.label}@{score.protocol}")
)
"""What names published scores: labels, also with a protocol; in the order of the environments."""


def figure_problems(spec: StudySpec) -> dict[str, str]:
    """Errors of a study's figures, by field."""
    errors: dict[str, str] = {}
    ids = [figure.id for figure in spec.figures]
    for number, figure in enumerate(spec.figures):
        if figure.id in ids[:number]:
            errors[f"figures.{number}.id"] = "is also the id of another figure"
        of_kind = KINDS[figure.kind].problems(figure, spec)
        for problem in (of_kind, _of_scores(figure), _of_rule(figure), _of_arms(figure, spec)):
            errors |= {f"figures.{number}.{field}": text for field, text in problem}
    return errors


def _of_scores(figure: StudyFigure) -> Iterator[Problem]:
    """References and published scores beside values that are no scores, or of no protocol."""
    rule = figure.reduction
    has_no_scores = rule.rule in ("top", "time_to", "time_to_peak")
    if rule.normalise is not None and has_no_scores:
        yield "reduction.normalise", f"{rule.rule} has no scores to be normalised: leave it out"
    elif (
        (rule.normalise or rule.reference) is not None
        and rule.rule != "best_kept"
        and rule.source == "training"
    ):
        yield (
            "reduction.source",
            "training has no protocol, whose published scores are the references: use evaluations",
        )
    if figure.published and (rule.ratio_to is not None or has_no_scores):
        values = f"the rule {rule.rule}" if rule.ratio_to is None else "ratio_to"
        yield "published", f"are scores, and the values of {values} are not: leave them out"
    for number, name in enumerate(figure.published):
        if name not in _PUBLISHED and name.partition("@")[0] in _PUBLISHED:
            yield f"published.{number}", "has no score of this protocol; leave out what follows @"
        elif name not in _PUBLISHED:
            known = ", ".join(label for label in _PUBLISHED if "@" not in label)
            yield f"published.{number}", f"is no published score; use one of {known}"


def _of_rule(figure: StudyFigure) -> Iterator[Problem]:
    """Rules that the kind cannot draw."""
    kind = KINDS[figure.kind]
    if figure.reduction.rule not in kind.rules:
        yield "reduction.rule", f"{kind.id} needs one of {', '.join(kind.rules)}"
    for name in ("normalise", "ratio_to"):
        if kind.plain_values and getattr(figure.reduction, name) is not None:
            yield f"reduction.{name}", f"{kind.id} draws {kind.plain_values} as they are: leave it out"


def _of_arms(figure: StudyFigure, spec: StudySpec) -> Iterator[Problem]:
    """Labels that no arm has."""
    labels = [arm.label for arm in spec.arms]
    unknown = f"no arm has this label; use one of {', '.join(labels)}"
    for number, label in enumerate(figure.arms):
        if label not in labels:
            yield f"arms.{number}", unknown
    for name in ("ratio_to", "reference_arm"):
        label = getattr(figure.reduction, name)
        if label is not None and label not in labels:
            yield f"reduction.{name}", unknown
