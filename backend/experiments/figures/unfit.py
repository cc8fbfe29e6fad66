"""Figures whose rules need what the arms and environments of a study lack."""

from collections.abc import Mapping, Sequence

from backend.experiments.cells.protocols import protocols_of
from backend.experiments.cells.rows import PlannedCell
from backend.experiments.figures.kinds import KINDS
from backend.experiments.figures.reducers import reducer_of
from backend.experiments.figures.runs import is_shown, setting_of
from backend.experiments.specs.study import Arm, StudyFigure, StudySpec
from backend.runs.runs.groups import measured_config, unlike_published
from backend.specs.algorithms import ALGORITHMS
from backend.specs.environments import ENVIRONMENTS
from backend.specs.protocols import protocol_title


def unfit_figures(spec: StudySpec, planned: Sequence[PlannedCell]) -> dict[str, str]:
    """Errors of figures whose rules need what arms and environments lack, by field."""
    protocols = [protocols_of(spec, number) for number in range(len(spec.arms))]
    return (
        _missing_references(spec, protocols)
        | differing_protocols(spec, planned, protocols)
        | _missing_settings(spec)
        | _settings_without_best(spec, planned)
        | _differing_observations(spec, planned, protocols)
    )


def _missing_references(spec: StudySpec, protocols: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Errors of figures whose rule needs references that environments lack, by field.

    Args:
        spec: the study.
        protocols: by arm, the evaluation protocol of each environment.
    """
    errors = {}
    for at, figure in enumerate(spec.figures):
        rule = figure.reduction
        shown = (of for arm, of in zip(spec.arms, protocols, strict=True) if is_shown(figure, arm))
        of_first = next(shown, None)
        if rule.reference_arm is not None or of_first is None:
            continue
        missing = reducer_of(rule, of_first).missing_references(spec.environments)
        if not missing:
            continue
        name = "normalise" if rule.normalise else "reference" if rule.reference else "references"
        under = "" if name == "references" else f" under {_titles(missing, of_first)}"
        message = f"has no such score for {', '.join(missing)}{under}"
        errors[f"figures.{at}.reduction.{name}"] = message
    return errors


def differing_protocols(
    spec: StudySpec, planned: Sequence[PlannedCell], protocols: Sequence[Mapping[str, str]]
) -> dict[str, str]:
    """Errors of figures of several protocols, by field: that set arms against published scores of a protocol
    which not all of their cells have, or make one value of an arm's evaluations of several.

    Args:
        spec: the study.
        planned: its cells, or new ones; draws may choose the protocol.
        protocols: by arm, the evaluation protocol of each environment.
    """
    errors = {}
    for at, figure in enumerate(spec.figures):
        rule = figure.reduction
        of_published = rule.normalise is not None or rule.reference is not None
        is_averaged = not KINDS[figure.kind].shows_each_run
        if not of_published and not (
            is_averaged and (rule.source == "evaluations" or rule.rule == "best_kept")
        ):
            continue
        used: dict[tuple[str, str], dict[str, str]] = {}
        for cell in planned:
            arm = spec.arms[cell.arm]
            if _is_measured(figure, arm) and cell.environment in ENVIRONMENTS:
                place = cell.environment, "" if of_published else arm.label
                protocol = protocols[cell.arm][cell.environment]
                used.setdefault(place, {}).setdefault(protocol, arm.label)
                used[place].setdefault(cell.spec.evaluation_protocol, arm.label)
        mixed = next((by_protocol for by_protocol in used.values() if len(by_protocol) > 1), None)
        if mixed is not None:
            listed = ", ".join(f"{protocol_title(protocol)} ({arm})" for protocol, arm in mixed.items())
            name = "normalise" if rule.normalise else "reference" if rule.reference else "source"
            whose = "arms" if of_published else "draws of an arm"
            message = (
                f"the {whose} have different evaluation protocols: {listed}; choose arms and draws of one"
            )
            errors[f"figures.{at}.reduction.{name}"] = message
    return errors


def _differing_observations(
    spec: StudySpec, planned: Sequence[PlannedCell], protocols: Sequence[Mapping[str, str]]
) -> dict[str, str]:
    """Errors of figures that set an arm against published scores of games that it observes in another way, by
    field.

    Args:
        spec: the study.
        planned: its cells.
        protocols: by arm, the evaluation protocol of each environment.
    """
    errors: dict[str, str] = {}
    for at, figure in enumerate(spec.figures):
        name = "normalise" if figure.reduction.normalise else "reference"
        if figure.reduction.normalise is None and figure.reduction.reference is None:
            continue
        for cell in planned:
            environment, arm = ENVIRONMENTS.get(cell.environment), spec.arms[cell.arm]
            is_another = cell.draw == 0 or spec.draws.space
            if environment is None or not is_another or not _is_measured(figure, arm):
                continue
            config = measured_config(cell.spec.model_dump(mode="json"))
            unlike = unlike_published(config, environment, protocols[cell.arm][cell.environment])
            if unlike:
                message = f"{arm.label} on {cell.environment} differs from the published scores in "
                errors[f"figures.{at}.reduction.{name}"] = message + ", ".join(unlike)
                break
    return errors


def _missing_settings(spec: StudySpec) -> dict[str, str]:
    """Errors of figures over a setting that one of their arms does not have, by field."""
    errors = {}
    for at, figure in enumerate(spec.figures):
        if figure.setting is None or figure.setting in spec.draws.space:
            continue
        section, _, name = figure.setting.partition(".")
        field = f"figures.{at}.setting"
        if section not in ("config", "environment_config") or not name:
            errors[field] = (
                "is not a setting: use a field of config or environment_config, such as config.n_e"
            )
            continue
        owners = (
            {
                f"the arm {arm.label}": ALGORITHMS.get(arm.algorithm)
                for arm in spec.arms
                if is_shown(figure, arm)
            }
            if section == "config"
            else {environment: ENVIRONMENTS.get(environment) for environment in spec.environments}
        )
        without = [
            owner for owner, known in owners.items() if known and name not in known.config.model_fields
        ]
        if without:
            errors[field] = f"{', '.join(without)}: no such setting"
    return errors


def _settings_without_best(spec: StudySpec, planned: Sequence[PlannedCell]) -> dict[str, str]:
    """Errors of figures that choose the best settings, where runs have none or no numbers, by field."""
    errors = {}
    for at, figure in enumerate(spec.figures):
        if figure.reduction.rule != "mean_of_best" or figure.reduction.of != "settings":
            continue
        path = setting_of(figure, spec)
        section, _, name = (path or "").partition(".")
        shown = (cell.spec for cell in planned if is_shown(figure, spec.arms[cell.arm]))
        values = (getattr(getattr(run, section, None), name, None) for run in shown)
        if path is None:
            message = "no setting is drawn: name one in the figure's setting, or choose runs"
        elif not all(isinstance(value, int | float) for value in values):
            message = f"not every value of {path} is a number: name another setting, or choose runs"
        else:
            continue
        errors[f"figures.{at}.reduction.of"] = message
    return errors


def _is_measured(figure: StudyFigure, arm: Arm) -> bool:
    """Whether a figure has a value of an arm: it shows it, or divides by it."""
    return is_shown(figure, arm) or arm.label == figure.reduction.ratio_to


def _titles(environments: Sequence[str], protocols: Mapping[str, str]) -> str:
    return ", ".join(dict.fromkeys(protocol_title(protocols[environment]) for environment in environments))
