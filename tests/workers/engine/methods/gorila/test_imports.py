"""Only the processes of a Gorila run import Ray."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.service

MODULES = [
    "workers.engine.training.loop",
    "workers.engine.training.evaluation",
    "workers.engine.methods.registry",
    "workers.engine.methods.dqn.dqn",
    "workers.engine.methods.gorila.worker",
    "workers.celery_app",
    "workers.supervisor",
    "backend.app",
    "callboard_cli.main",
]


@pytest.mark.long
def test_only_gorila_imports_ray() -> None:
    code = f"import sys, {', '.join(MODULES)}; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
