#!/bin/sh
# MLflow 3.17.2 (mlflow-skinny): of values of one metric with one step and one millisecond, `run.data.metrics` has
# the largest, not the last that was logged. A script that logs a falling loss without steps, several values a
# millisecond, ends with another loss than its last. The SQLite store's `get_metric_history` returns such values
# sorted, so that their order is lost; the folder store keeps it.
#
# Seen, of 5, 3, 1 logged in this order:
#   sqlite {'loss': 5.0} [1.0, 3.0, 5.0]
#   folder {'loss': 5.0} [5.0, 3.0, 1.0]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/python -m pip install --quiet mlflow-skinny==3.17.2 sqlalchemy==2.1.9 alembic==1.20.1
cat > finding.py <<'PY'
import logging
import os
import sys

os.environ.update(MLFLOW_ALLOW_FILE_STORE="true", MLFLOW_DISABLE_TELEMETRY="true")
import mlflow

logging.disable(logging.WARNING)
print("mlflow", mlflow.__version__)
seen = {}
for store, address in (("sqlite", "sqlite:///runs.db"), ("folder", "file:" + os.path.abspath("mlruns"))):
    client = mlflow.MlflowClient(address)
    run = client.create_run(client.create_experiment("falling")).info.run_id
    for value in (5.0, 3.0, 1.0):
        client.log_metric(run, "loss", value, timestamp=1_000, step=0)
    history = [metric.value for metric in client.get_metric_history(run, "loss")]
    seen[store] = client.get_run(run).data.metrics, history
    print(store, *seen[store])
wanted = {"sqlite": ({"loss": 5.0}, [1.0, 3.0, 5.0]), "folder": ({"loss": 5.0}, [5.0, 3.0, 1.0])}
sys.exit(seen != wanted)
PY
venv/bin/python finding.py
