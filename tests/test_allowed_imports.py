"""The import contract "allowed", on small graphs of imports."""

from typing import Any

from grimp import ImportGraph

from tests.allowed_imports import AllowedImports

IMPORTS = {
    "app.specs": ["pydantic", "json", "app.specs.run"],
    "app.specs.run": ["pydantic", "torch"],
    "app.runs.repository": ["app.specs.run", "sqlalchemy"],
    "app.runs.service": ["app.runs.repository", "app.specs"],
}


def problems(**options: Any) -> list[str]:
    graph = ImportGraph()
    for importer, imported in IMPORTS.items():
        for name in imported:
            graph.add_import(importer=importer, imported=name)
    contract = AllowedImports("contract", {}, {"name": "contract", "type": "allowed"} | options)
    return list(contract.check(graph, verbose=False).metadata["problems"])


def test_imports_outside_the_package_the_standard_library_and_the_list_are_reported() -> None:
    reported = problems(packages=["app.specs"], allowed=["pydantic"])
    assert reported == ["app.specs.run -> torch is not allowed"]
    assert problems(packages=["app.specs"], allowed=["pydantic", "torch"]) == []


def test_star_allows_one_level_and_what_is_below_a_name() -> None:
    options = {"packages": ["app.runs"], "except_modules": ["app.runs.service"]}
    assert problems(**options, allowed=["app.specs", "sqlalchemy"]) == []
    assert problems(**options, allowed=["app.*.run", "sqlalchemy"]) == []
    assert problems(**options, allowed=["*.run", "sqlalchemy"]) == [
        "app.runs.repository -> app.specs.run is not allowed"
    ]


def test_exception_is_allowed_for_its_importer_and_must_have_a_use() -> None:
    exceptions = ["app.specs.run -> torch", "app.specs.run -> numpy"]
    reported = problems(packages=["app.specs"], allowed=["pydantic"], exceptions=exceptions)
    assert reported == ["app.specs.run -> numpy is an exception without a use"]


def test_misspelt_package_is_reported() -> None:
    assert problems(packages=["app.spec"], allowed=["pydantic"]) == ["no such package"]
