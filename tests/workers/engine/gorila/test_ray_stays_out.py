"""Ray is for the processes of a Gorila run alone."""

import subprocess
import sys

MODULES = [
    "workers.engine.training",
    "workers.engine.evaluation",
    "workers.engine.algorithms",
    "workers.engine.algorithms.dqn",
    "workers.engine.gorila.hosts",
    "workers.celery_app",
    "workers.supervisor",
    "backend.app",
    "backend.cli.main",
]


def test_no_other_process_imports_ray() -> None:
    code = f"import sys, {', '.join(MODULES)}; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
