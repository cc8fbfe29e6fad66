# %% [markdown]
# Every point of a metric of many runs, as NumPy columns. Editors open the cells of this file as a notebook.

# %%
import sys

import numpy as np

import callboard

# The filter is this command's argument; a notebook has arguments of its own.
arguments = [] if "ipykernel" in sys.modules else sys.argv[1:]
QUERY = arguments[0] if arguments else "state:finished"
METRIC = "rollout/episode_return"

client = callboard.connect()
runs = client.runs(QUERY)
series = runs.series(METRIC)
print(f"{len(runs)} runs, {len(series):,} points of {METRIC}")

# %% [markdown]
# The mean of each run's last 100 episodes. `series.to_pandas()` and `series.to_polars()` give a data frame.

# %%
for run_id, points in series.by_run().items():
    run = next(run for run in runs if run.id == run_id)
    print(f"{run.name:40} {np.mean(points.value[-100:]):10.1f} at {points.agent_steps[-1]:,} agent steps")

# %% [markdown]
# Mean over the runs at equal agent steps: each run's returns interpolated on a common grid.

# %%
by_run = series.by_run().values()
grid = np.linspace(0, min(points.agent_steps[-1] for points in by_run), 11) if by_run else np.empty(0)
curves = [np.interp(grid, points.agent_steps, points.value) for points in by_run]
for steps, value in zip(grid, np.mean(curves, axis=0) if curves else (), strict=True):
    print(f"{steps:12,.0f} {value:10.1f}")
client.close()
