"""Extras of the distribution: packages that a machine may lack, since not every Python has a wheel of them.

`python -m backend.specs.extras EXTRA...` prints a line for each of these extras that this Python lacks.
"""

import platform
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec

PACKAGES = {"envpool": "envpool", "gorila": "ray", "parquet": "pyarrow", "racing": "Box2D"}
"""Extra -> the package that it installs, whose module has the same name."""


def install_command(extra: str) -> str:
    """What installs an extra."""
    return f"pip install 'callboard[{extra}]'"


def missing_extras(versions: Mapping[str, str]) -> list[str]:
    """The extras that a host lacks.

    Args:
        versions: version of each package that the host reports; of a host that reports none, no extra counts
            as missing.
    """
    return [extra for extra, package in PACKAGES.items() if versions and package not in versions]


def missing_everywhere(extra: str, hosts: Iterable[Mapping[str, str]]) -> bool:
    """Whether there are hosts, and every one of them lacks the extra.

    Args:
        extra: the extra.
        hosts: the versions that each host reports.
    """
    lacking = [extra in missing_extras(versions) for versions in hosts]
    return bool(lacking) and all(lacking)


def missing_here() -> list[str]:
    """The extras that this Python lacks."""
    return [extra for extra in PACKAGES if not installed(extra)]


@cache
def installed(extra: str) -> bool:
    """Whether this Python has the extra's package."""
    return find_spec(PACKAGES[extra]) is not None


if __name__ == "__main__":
    for name in sys.argv[1:]:
        if not installed(name):
            python = f"{platform.python_implementation()} {platform.python_version()}"
            sys.stdout.write(f"callboard[{name}] is left out: {PACKAGES[name]} has no wheel for {python}\n")
