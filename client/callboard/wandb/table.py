"""What each public name, argument and variable of W&B's means here.

The names are those of W&B 0.31, listed by `tests/support/foreign_names.py`; a test compares them.
"""

from __future__ import annotations

from callboard.foreign import USED, Refused, Table

_METHODS = {
    "log": "data step commit",
    "finish": "exit_code",
    "alert": "title text level wait_duration",
    "save": "glob_str base_path glob",
    "define_metric": "name step_metric step_sync overwrite",
    "log_model": "path",
    "unwatch": "models",
}
"""Functions of the module and methods of a run -> their arguments that are used."""
_USED = {
    **_METHODS,
    **{f"Run.{name}": arguments for name, arguments in _METHODS.items()},
    "init": "project entity config name group tags notes id resume resume_from fork_from mode reinit "
    "job_type dir config_exclude_keys config_include_keys settings allow_val_change",
    "Settings": "project entity run_id run_name run_group run_tags run_notes run_job_type mode resume "
    "resume_from fork_from reinit root_dir allow_val_change",
    "Run": "config dir disabled entity group id job_type name notes offline path project resumed start_time "
    "starting_step step summary sweep_id sweep_url tags url get_url project_url to_html settings sync_dir "
    "write_logs settings config sweep_config",
    "Run.to_html": "height hidden",
    "Run.write_logs": "text",
    "Video": "data_or_path caption fps",
    "Histogram": "sequence np_histogram",
    "Image": "data_or_path caption normalize",
    "Table": "columns data rows dataframe optional allow_mixed_types",
    "WandbCallback": "verbose model_save_path model_save_freq",
    "AlertLevel": "*",
    "Error": "*",
    "CommError": "*",
    "UsageError": "*",
    "join": "exit_code",
    "teardown": "exit_code",
    "setup": "settings",
    "termlog": "*",
    "termwarn": "*",
    "termerror": "*",
    "termsetup": "*",
    "login": "",
    "ensure_configured": "",
}
"""Names that are used -> their arguments or attributes that are."""
_NAMES = (
    "config summary run patched api util errors data_types Config plot annotations integration sdk env apis"
)
_VARIABLES = "PROJECT ENTITY NAME RUN_ID RUN_GROUP TAGS NOTES MODE RESUME JOB_TYPE DIR DISABLED"

_TO_COUNT = "`wandb.save(path)` stores a file with the run, and `wandb.Video` is shown on its page"
_PIXELS = "the shape of the pixels says what they are"
_FILES = "`wandb.save(path)` stores a file with the run"
_READS = "it reads from W&B's service: `callboard.connect()` reads runs, and a run's page has its files"
_SWEEPS = "W&B's sweeps start no runs here: start them on the page Sweeps, or with `callboard sweeps`"
_MESSAGES = "messages are those of the logger `callboard`: set its level"
_ADDRESS = "the server is that of CALLBOARD_URL, with the token CALLBOARD_TOKEN"
_SERVICE = "it concerns W&B's own process or service, of which there is none"

_SAID: dict[str, str] = {
    "init.force": "a run needs no login: what cannot be sent is kept until it can",
    "init.save_code": "code is not kept: `wandb.save(path)` stores a file with the run",
    "init.monitor_gym": "videos that gymnasium records are not found: log them as wandb.Video(path)",
    "init.anonymous": _ADDRESS,
    "init.reinit=create_new": "a process has one run at a time: the one before is finished",
    "init.tensorboard": "what callboard.SummaryWriter writes goes to this run",
    "init.sync_tensorboard": "what callboard.SummaryWriter writes goes to this run; what torch's own "
    "SummaryWriter writes does not: replace its import",
    "Settings.*": "the setting has no meaning here",
    "Settings.api_key": _ADDRESS,
    "Settings.base_url": _ADDRESS,
    "Settings.quiet": _MESSAGES,
    "Settings.silent": _MESSAGES,
    "WANDB_QUIET": _MESSAGES,
    "WANDB_SILENT": _MESSAGES,
    "WANDB_API_KEY": _ADDRESS,
    "WANDB_BASE_URL": _ADDRESS,
    "WANDB_RESUME_FROM": "pass resume_from to init",
    "WANDB_SWEEP_ID": _SWEEPS,
    "WANDB_LOG_MODEL": "pass the model's file to wandb.save",
    "WANDB_WATCH": _TO_COUNT,
    "WANDB_*": "the variable has no meaning here",
    "*save.policy": "a file is stored when save is called: call it again after a change",
    "*define_metric.hidden": "charts are chosen on the run's page",
    "*define_metric.summary": "the summary has the last values; best and mean are on the run's page",
    "*define_metric.goal": "a run is scored by its returns: init(return_metric=…)",
    "*watch": "log their norms as metrics",
    "*log_code": "code is not kept: `wandb.save(path)` stores a file with the run",
    "*log_artifact": _FILES,
    "*upsert_artifact": _FILES,
    "*finish_artifact": _FILES,
    "*link_artifact": _FILES,
    "*link_model": _FILES,
    "*mark_preempting": "a run whose process ends is lost, and goes on with init(id=…, resume='allow')",
    "*pin_config_keys": "columns of settings are chosen on the page Runs",
    "*use_artifact": Refused(_READS),
    "*use_model": Refused(_READS),
    "*restore": Refused(_READS),
    "Api": Refused(_READS),
    "apis.*": Refused(_READS),
    "sweep": Refused(_SWEEPS),
    "agent": Refused(_SWEEPS),
    "controller": Refused(_SWEEPS),
    "attach": Refused("a run belongs to one process: others log with callboard.init(id=…)"),
    "login.*": _ADDRESS,
    "require": "no such feature is switched",
    "sagemaker_auth": _ADDRESS,
    "Video.format": "the server encodes it as MP4",
    "*log_model.*": "a stored file has no name: its agent steps say which it is",
    "WandbCallback.gradient_save_freq": "gradients and parameters are not kept",
    "WandbCallback.log": "gradients and parameters are not kept",
    "Image.mode": _PIXELS,
    "Image.file_type": "an array is sent as PNG, a file as it is",
    "Image.*": "the image is kept without it",
    "Histogram.num_bins": "a histogram has 64 bins, or one for each of fewer whole numbers",
    "Table.dtype": "a cell is what it is: a number, a text, a boolean or None",
    "Table.log_mode": "a table has the rows that it has when it is logged",
    "*Table*": _TO_COUNT,
    "Audio*": _TO_COUNT,
    "Html*": _TO_COUNT,
    "Object3D*": _TO_COUNT,
    "Molecule*": _TO_COUNT,
    "Graph*": _TO_COUNT,
    "Plotly*": _TO_COUNT,
    "Artifact*": _FILES,
    "ArtifactTTL*": _FILES,
    "Classes*": _TO_COUNT,
    "box3d*": _TO_COUNT,
    "plot*": _TO_COUNT,
    "visualize*": _TO_COUNT,
    "Run.*": "it has no meaning for a run of Callboard",
    "util.*": _SERVICE,
    "sdk.*": _SERVICE,
    "integration.*": "log with callboard.sb3, callboard.SummaryWriter or wandb.log",
}

TABLE: Table = {
    **dict.fromkeys((*_USED, *_NAMES.split(), *(f"WANDB_{name}" for name in _VARIABLES.split())), USED),
    **{f"{name}.{argument}": USED for name, arguments in _USED.items() for argument in arguments.split()},
    **_SAID,
}
"""Exact names stand before patterns, and of patterns the first counts."""
