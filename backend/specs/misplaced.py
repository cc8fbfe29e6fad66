"""Fields of a run's request in the wrong section: where they belong."""

from collections.abc import Iterable, Mapping

from pydantic import BaseModel

from backend.specs.problems import NO_FIELD, FieldProblem, explained


def places(sections: Mapping[str, type[BaseModel]], request: Iterable[str]) -> dict[str, str]:
    """The path of every field by its name, and by the path itself.

    Args:
        sections: the models of the sections, as far as they are known.
        request: the fields of the request itself.
    """
    found = {name: name for name in request}
    for section, model in sections.items():
        paths = {field: f"{section}.{field}" for field in model.model_fields}
        found |= paths | {path: path for path in paths.values()}
    return found


def moved(problems: Iterable[FieldProblem], section: str, elsewhere: Mapping[str, str]) -> list[FieldProblem]:
    """A section's problems, where those of fields that belong elsewhere name the path that is meant."""
    return [
        _meant(each, f"did you mean {path}?")
        if each.message == NO_FIELD
        and (path := elsewhere.get(each.field.removeprefix(f"{section}.")))
        and path.partition(".")[0] != section
        else each
        for each in problems
    ]


def placed(
    problems: Iterable[FieldProblem], sections: Mapping[str, type[BaseModel]], request: Iterable[str]
) -> list[FieldProblem]:
    """The request's problems, where those of fields that do not exist name the section or the fields that
    are meant."""
    meant = {"preset": "send the preset's settings, which GET /api/v1/algorithms lists"}
    for section, model in sections.items():
        for field in model.model_fields:
            meant[field] = f"did you mean {section}.{field}?"
            meant[f"{section}.{field}"] = f'send {{"{section}": {{"{field}": …}}}}'
    found = [
        _meant(each, meant[each.field]) if each.message == NO_FIELD and each.field in meant else each
        for each in problems
    ]
    return explained(found, request)


def _meant(problem: FieldProblem, what: str) -> FieldProblem:
    return problem.model_copy(update={"message": f"{NO_FIELD}; {what}"})
