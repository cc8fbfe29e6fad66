"""Which tests run in one process of pytest-xdist: those that share an installation and a browser, or Ray.

pytest-xdist's own `xdist_group` marks do nothing with the pytest in use, so the groups are made of paths.
"""

from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

BROWSER_FILES = sorted(path.name for path in Path(__file__).parents[1].glob("browser/test_*.py"))
WHOLE_FILES = (
    "tests/backend/auth/oidc/test_endpoints.py",
    "tests/backend/http/test_openapi.py",
    "tests/backend/figures/test_rendering.py",
    "tests/callboard_cli/test_up.py",
    "tests/client/test_generated_client.py",
    "tests/golden/test_golden.py",
    "tests/workers/engine/test_contract",
)
"""Their tests share what takes long to start."""
RAY_FILES = ("tests/workers/engine/methods/gorila/test_gorila", "tests/benchmarks/test_gorila")


def group(nodeid: str) -> str:
    """Name what a test runs together with: by itself, a test is its own group."""
    if nodeid.startswith("tests/browser/"):
        # Two halves, each with an installation and a browser of its own.
        name = nodeid.removeprefix("tests/browser/").partition("::")[0]
        return f"browser {BROWSER_FILES.index(name) % 2}"
    if nodeid.startswith(RAY_FILES) or "[gorila_dqn" in nodeid:
        return "ray faults" if "test_gorila_faults" in nodeid else "ray"
    return nodeid.partition("::")[0] if nodeid.startswith(WHOLE_FILES) else nodeid


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each process the next group, the largest first."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
