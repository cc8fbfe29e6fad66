"""The import contract "allowed": all that a package imports, besides itself and the standard library."""

import re
import sys

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class AllowedImports(Contract):
    """Modules of a package import directly only what is listed, or below it.

    Options:
        packages: the packages; in these names, "*" stands for one level of names, "**" for one or more.
        except_modules: packages and modules below them that the contract does not cover.
        allowed: packages and modules that they may import.
        exceptions: single imports, as "importer -> imported".
    """

    type_name = "allowed"

    packages = fields.SetField(subfield=fields.StringField())
    except_modules = fields.SetField(subfield=fields.StringField(), required=False, default=frozenset())
    allowed = fields.SetField(subfield=fields.StringField())
    exceptions = fields.SetField(subfield=fields.StringField(), required=False, default=frozenset())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Find the imports that are not listed, and the exceptions that are not needed."""
        own, exempt, allowed = map(_pattern, (self.packages, self.except_modules, self.allowed))
        modules = [name for name in graph.modules if own.fullmatch(name) and not exempt.fullmatch(name)]
        others = {
            f"{importer} -> {imported}"
            for importer in modules
            for imported in graph.find_modules_directly_imported_by(importer)
            if imported not in sys.stdlib_module_names
            and not any(known.fullmatch(imported) for known in (own, allowed))
        }
        exceptions: set[str] = set(self.exceptions)  # type: ignore[call-overload]
        problems = [f"{name} is not allowed" for name in sorted(others - exceptions)]
        problems += [f"{name} is an exception without a use" for name in sorted(exceptions - others)]
        if not modules:
            problems.append("no such package")
        return ContractCheck(kept=not problems, metadata={"problems": problems})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print what `check` found."""
        for problem in check.metadata["problems"]:
            output.print_error(problem, bold=False)


def _pattern(names: object) -> re.Pattern[str]:
    """Matches these modules, and those below them."""
    assert isinstance(names, set | frozenset)
    parts = "|".join(re.escape(name).replace(r"\*\*", ".+").replace(r"\*", "[^.]+") for name in names)
    return re.compile(rf"(?:{parts})(?:\..+)?")
