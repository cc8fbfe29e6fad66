#!/bin/sh
# rsl_rl 5.5.1 (rsl-rl-lib): `Train/mean_reward` is the mean of a deque of 100 returns, filled by the number of the
# environment. Where more than 100 environments end in one step, as those of one time limit do, it is that of the
# 100 with the highest numbers, always the same ones: with terrains or settings by number, of the last of them
# only. Its `Train/mean_reward/time` has whole seconds as steps, so that short iterations share a step.
#
# Seen, of 300 environments with returns 0 to 299 and four iterations of 0.3 s:
#   Train/mean_reward: 249.5 (of all: 149.5)
#   Train/mean_reward/time: steps 0, 0, 0, 1
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/python -m pip install --quiet rsl-rl-lib==5.5.1 torch==2.13.0
cat > finding.py <<'PY'
import contextlib
import io
import sys
from importlib.metadata import version

import torch
from rsl_rl.utils.logger import Logger

N = 300


class Writer:
    def __init__(self):
        self.rows = []

    def add_scalar(self, tag, value, step):
        self.rows.append((tag, float(value), step))


config = {"algorithm": {}, "num_steps_per_env": 5}
log = Logger(None, config, {}, N, is_distributed=False, gpu_world_size=1, gpu_global_rank=0, device="cpu")
log.writer = Writer()
for iteration in range(4):
    for step in range(5):
        ends = torch.full((N,), step == 4)
        log.process_env_step(torch.arange(N, dtype=torch.float) / 5, ends, {})
    with contextlib.redirect_stdout(io.StringIO()):
        log.log(iteration, 0, 4, 0.15, 0.15, {}, 1e-3, torch.ones(1), None)
print("rsl-rl-lib", version("rsl-rl-lib"))
means = {value for tag, value, _ in log.writer.rows if tag == "Train/mean_reward"}
steps = [step for tag, _, step in log.writer.rows if tag == "Train/mean_reward/time"]
print("Train/mean_reward:", *means, "(of all:", f"{(N - 1) / 2})")
print("Train/mean_reward/time: steps", *steps)
sys.exit((means, steps) != ({249.5}, [0, 0, 0, 1]))
PY
venv/bin/python finding.py
