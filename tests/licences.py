"""Installed packages under reciprocal licences, by their metadata. `python -m tests.licences` prints them."""

import re
import sys
from importlib.metadata import PackageMetadata, distributions

_RECIPROCAL = re.compile(r"\b(A|L)?GPL|General Public License|\bMPL\b|Mozilla Public|EUPL|CDDL|\bEPL\b", re.I)


def licence(metadata: PackageMetadata) -> str:
    """What the metadata says: the expression, else the first line of the text and the classifiers."""
    fields = metadata.json
    if expression := fields.get("license_expression"):
        return str(expression)
    text = str(fields.get("license", "")).partition("\n")[0]
    classifiers = [classifier for classifier in fields.get("classifier", []) if "License ::" in classifier]
    return "; ".join(filter(None, [text, *(classifier.rpartition(" :: ")[2] for classifier in classifiers)]))


def reciprocal() -> dict[str, str]:
    """Package -> its licence, of every installed package with a reciprocal one."""
    texts = {
        distribution.metadata["Name"]: licence(distribution.metadata) for distribution in distributions()
    }
    return {name: text for name, text in sorted(texts.items()) if _RECIPROCAL.search(text)}


if __name__ == "__main__":
    for name, text in reciprocal().items():
        sys.stdout.write(f"{name}\t{text}\n")
