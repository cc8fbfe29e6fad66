#!/bin/sh
# W&B 0.31.0 with `sync_tensorboard=True`, as CleanRL's scripts use it, offline: in each row `_timestamp` is when
# the value was logged, but `_runtime`, which is W&B's axis "relative time", is when its own process has read the
# event file, some seconds later and many rows at once. The curve over relative time is a staircase; that of a
# script of less than ten seconds is one vertical line.
#
# Seen, of 16 values logged 0.5 s apart:
#   _timestamp: 7.5 s from the first to the last
#   _runtime: 15 of 15 differences below 0.1 s
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/python -m pip install --quiet wandb==0.31.0 tensorboardX==2.6.5 tensorboard==2.21.0
cat > train.py <<'PY'
import time

import wandb
from tensorboardX import SummaryWriter

wandb.init(project="p", mode="offline", sync_tensorboard=True)
writer = SummaryWriter("tb", flush_secs=1)
for step in range(16):
    writer.add_scalar("loss", step, step)
    time.sleep(0.5)
writer.close()
wandb.finish()
PY
cat > finding.py <<'PY'
import glob
import json
import struct
import sys

import wandb
from wandb.proto.wandb_internal_pb2 import Record


def records(path):
    """LevelDB's log format: blocks of 32 KiB, records in fragments; 7 bytes of W&B before the first."""
    with open(path, "rb") as file:
        data = file.read()
    at, parts = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, size, kind = struct.unpack("<IHB", data[at : at + 7])
        parts += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last fragment
            yield Record.FromString(parts)
            parts = b""


[path] = glob.glob("wandb/offline-run-*/*.wandb")
rows = [
    {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
    for record in records(path)
    if record.WhichOneof("record_type") == "history"
]
runtime = [row["_runtime"] for row in rows]
logged_s = rows[-1]["_timestamp"] - rows[0]["_timestamp"]
n_together = sum(after - before < 0.1 for before, after in zip(runtime, runtime[1:]))
print("wandb", wandb.__version__, "rows", len(rows))
print(f"_timestamp: {logged_s:.1f} s from the first to the last")
print(f"_runtime: {n_together} of {len(rows) - 1} differences below 0.1 s")
sys.exit(not (len(rows) == 16 and logged_s > 7 and n_together >= 10))
PY
HOME="$folder" WANDB_SILENT=true venv/bin/python train.py
venv/bin/python finding.py
