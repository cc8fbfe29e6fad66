"""W&B's, MLflow's and Trackio's own files, imported by `callboard import`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

REQUIREMENTS = ("wandb==0.31.0", "mlflow-skinny==3.17.2", "sqlalchemy", "alembic", "trackio==0.43.0")
SETTINGS = {"env_id": "CartPole-v1", "algo": "ppo", "seed": 4, "lr": 0.5}
RETURNS = [float(step) for step in range(20)]
OF_LOGS = {
    "algorithm": "ppo",
    "environment": "CartPole-v1",
    "seed": 4,
    "config": SETTINGS,
    "score": RETURNS[-1],
}


def write() -> list[dict[str, Any]]:
    """Write the files; what each library has been given."""
    os.environ |= {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
    os.environ |= {"WANDB_SILENT": "true", "TRACKIO_DIR": str(Path("trackio").absolute())}
    import mlflow
    import trackio
    import wandb

    run = wandb.init(mode="offline", project="p", name="of wandb", config=SETTINGS)
    run.define_metric("*", step_metric="env_steps")
    for step, value in enumerate(RETURNS):
        run.log({"env_steps": step * 64, "rollout/ep_rew_mean": value})
    run.finish(exit_code=3)
    mlflow.set_tracking_uri(Path("mlruns").absolute().as_uri())
    with mlflow.start_run(run_name="of mlflow"):
        mlflow.log_params(SETTINGS)
        for step, value in enumerate(RETURNS):
            mlflow.log_metric("rollout/ep_rew_mean", value, step=step * 64)
    trackio.init(project="p", name="of trackio", config=SETTINGS)
    for step, value in enumerate(RETURNS):
        trackio.log({"global_step": step * 64, "rollout/ep_rew_mean": value})
    trackio.finish()
    last = (len(RETURNS) - 1) * 64
    counted = OF_LOGS | {"step_unit": "agent_steps", "agent_steps": last}
    return [
        counted | {"name": "of wandb", "state": "failed"},
        counted | {"name": "Default/of mlflow", "state": "finished"},
        counted | {"name": "p/of trackio", "state": "finished"},
    ]


def main() -> None:
    """Write the files, and import them as the guide says."""
    says = write()
    del os.environ["MLFLOW_ALLOW_FILE_STORE"]
    for kind, path in (("wandb", "wandb"), ("mlflow", "mlruns"), ("trackio", "trackio")):
        command = [sys.executable, "-m", "callboard", "import", kind, path]
        subprocess.run([*command, "--group", os.environ["LIBRARY_GROUP"]], check=True, stdout=sys.stderr)
    print(json.dumps(says))  # noqa: T201


if __name__ == "__main__":
    main()
