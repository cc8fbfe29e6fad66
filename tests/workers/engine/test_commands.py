import subprocess
import sys

import pytest

pytestmark = pytest.mark.service

LOADED = """
import sys
from workers.engine.commands import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0
    names = [name for name in sys.modules if name.startswith("workers.engine.commands.")]
    print(*sorted(names), "torch" in sys.modules)
"""


def test_help_of_a_subcommand_imports_no_other() -> None:
    command = [sys.executable, "-c", LOADED, "start-set", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--document DOCUMENT" in done.stdout
    assert done.stdout.splitlines()[-1] == "workers.engine.commands.start_set False"


def test_help_names_every_subcommand() -> None:
    command = [sys.executable, "-m", "workers.engine", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for name in ("train", "evaluate", "video", "game", "thumbnail", "branch", "saliency"):
        assert f"\n    {name} " in done.stdout
