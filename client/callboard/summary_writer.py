"""TensorBoard's `SummaryWriter`, writing to a run: a script that logs to it changes its import only."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, SupportsFloat

from callboard.cleaning import as_steps, as_text
from callboard.config import SETTINGS_TAGS, UNKNOWN, config_of_table, plain_word
from callboard.external import ExternalRun
from callboard.files import frames_of_videos
from callboard.folders import described_by_folder
from callboard.foreign import Foreign
from callboard.handlers import pass_on
from callboard.limits import MAX_ALGORITHM, MAX_ENVIRONMENT, MAX_NAME
from callboard.media import Histogram, Image
from callboard.starting import init
from callboard.tally import warn
from callboard.writer_table import KINDS, TABLE

if TYPE_CHECKING:
    from typing import Self


_MAX_QUEUE, _FLUSH_S = 10, 120
"""The defaults of torch's writer."""
_OF_OTHERS = frozenset({"logdir", "write_to_disk", "comet_config"})
"""Arguments of tensorboardX's writer."""
_NEW = "this is a new run: pass id=…, or run=callboard.init(id=…), to continue an earlier one"


class SummaryWriter:
    """Logs to a run as `torch.utils.tensorboard.SummaryWriter` logs to a folder.

    Scalars, text, hyperparameters, histograms, images, figures and videos are kept. Audio, graphs and the
    like are accepted, counted in `n_not_kept`, and reported once each. `global_step` is read as agent steps.
    What each name and argument means is declared in `TABLE`.

    Algorithm and environment come from the arguments, else from the folder's name, as CleanRL's scripts
    choose it (`runs/<environment>__<algorithm>__<seed>__<time>`; a slash in a setting's `env_id`, which a
    folder's name cannot have, is kept), else from the settings (`exp_name`, `env_id`) that come before the
    first scalar, else they are the script's name and `unknown`.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
        *,
        run: ExternalRun | None = None,
        algorithm: str | None = None,
        environment: str | None = None,
        **options: Any,
    ) -> None:
        """Start a run.

        Args:
            log_dir: a path whose last part names the run. Nothing is written there.
            comment: appended to the name.
            purge_step: of an existing run, given as `run` or by its `id`: it continues from the step before
                this one, and what it has logged after that is kept aside.
            max_queue: said once, if it is not the default, as the following two: nothing waits.
            flush_secs: see `max_queue`.
            filename_suffix: see `max_queue`.
            run: log to this run, which stays open, instead of starting one. While a run of `callboard.wandb`
                is active, it is that one.
            algorithm: name of the method.
            environment: id of the environment.
            options: others of `callboard.init`.
        """
        options = dict(options)
        self._foreign = Foreign("SummaryWriter", TABLE)
        self.n_not_kept = self._foreign.n_not_kept
        for name in _OF_OTHERS & options.keys():
            log_dir = log_dir or (options[name] if name == "logdir" else None)
            self._foreign.arguments("SummaryWriter", {name: options.pop(name)})
        rest: dict[str, Any] = {"filename_suffix": filename_suffix}
        rest |= {} if max_queue == _MAX_QUEUE else {"max_queue": max_queue}
        rest |= {} if flush_secs == _FLUSH_S else {"flush_secs": flush_secs}
        self._foreign.arguments("SummaryWriter", rest)
        self._log_dir = "" if log_dir is None else os.fspath(log_dir)
        run = run or _run_of_wandb()
        self._own = run is None
        self._default_algorithm: str | None = None
        if purge_step is not None and "id" not in options:
            if run is None:
                self._foreign.say("SummaryWriter.purge_step", _NEW)
            else:
                run._rewind(max(0, as_steps(purge_step - 1).value or 0))
        if run is None and "id" in options:
            rewind = {} if purge_step is None else {"rewind_to": max(0, purge_step - 1)}
            run = init(**rewind | options)
        elif run is None:
            named = _from_folder(self._log_dir)
            if algorithm is None and named["algorithm"] == UNKNOWN:
                self._default_algorithm = plain_word(_script(), MAX_ALGORITHM)
            given = {"algorithm": algorithm, "environment": environment} | options
            fields = named | {name: value for name, value in given.items() if value is not None}
            fields["name"] = f"{fields['name']}{comment}"[:MAX_NAME]
            run = init(**fields)
        self.run = run
        self._last_step = run.agent_steps

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the run in the state that the exception means."""
        if self._own:
            self._name_algorithm()
            self.run.__exit__(kind, error, trace)

    @property
    def log_dir(self) -> str:
        """The folder it was given."""
        return self._log_dir

    def get_logdir(self) -> str:
        """The folder it was given."""
        return self._log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: SupportsFloat,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Log a value. Without `global_step` it has the last one."""
        if walltime is not None:
            self._foreign.say("add_scalar.walltime")
        if self._default_algorithm is not None:
            self._name_algorithm()
        self.run.log({as_text(tag): scalar_value}, agent_steps=self._step(global_step))

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, SupportsFloat],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Log several values, each as `main_tag/tag`."""
        self._log(tag_scalar_dict, f"{as_text(main_tag)}/", global_step)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write `tag: text` into the run's log. Without `global_step` it has the last one.

        A table of settings, such as CleanRL's `hyperparameters`, is added to the run's config instead.
        """
        name, text = as_text(tag), as_text(text_string)
        if name in SETTINGS_TAGS and (settings := config_of_table(text)):
            self._update(settings)
        else:
            self.run.text(name or "text", text, agent_steps=self._step(global_step))

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, SupportsFloat],
        hparam_domain_discrete: Mapping[str, Any] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Add the hyperparameters to the run's config, and log the metrics."""
        self._foreign.arguments("add_hparams", {"hparam_domain_discrete": hparam_domain_discrete})
        self._update(hparam_dict)
        self._log(metric_dict, "", global_step)

    def _update(self, settings: Mapping[str, Any]) -> None:
        try:
            self.run.config.update(settings)
        except Exception as error:  # of any object
            pass_on(error)
            self.run.text(f"hyperparameters: not kept: {as_text(error)}", level="warning")

    def flush(self) -> None:
        """Do nothing: everything is sent within a second."""

    def close(self) -> None:
        """End the run as finished; one that was passed as `run` stays open."""
        if self._own:
            self._name_algorithm()
            self.run.close()

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: int | None = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Show the videos (N, T, C, H, W) on the run's page, side by side; not kept if they cannot be.

        Floats are read as 0 to 1, as TensorBoard reads them.
        """
        try:
            self.run.video(frames_of_videos(vid_tensor), agent_steps=self._step(global_step), fps=fps)
        except Exception as error:  # of any object
            pass_on(error)
            warn("callboard: the video %s is not kept: %s", as_text(tag), as_text(error))
            self._foreign.not_kept("videos")

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Log how values are distributed, in at most 64 bins."""
        chosen = None if isinstance(bins, str) and bins == "tensorflow" else "given"
        self._foreign.arguments("add_histogram", {"bins": chosen, "max_bins": max_bins, "walltime": walltime})
        self._log({tag: Histogram(values)}, "", global_step)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: float,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Log values that are counted already; more than 64 buckets are joined."""
        self._foreign.arguments("add_histogram_raw", {"walltime": walltime})
        try:
            histogram = Histogram.of_buckets(float(min), float(max), bucket_limits, bucket_counts)
        except Exception as error:  # of any object
            pass_on(error)
            histogram = Histogram()  # which is counted as one without values
        self._log({tag: histogram}, "", global_step)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Show an image at its step. Floats are read as 0 to 1, as TensorBoard reads them."""
        self._foreign.arguments("add_image", {"walltime": walltime})
        self._log({tag: Image(img_tensor, layout=dataformats)}, "", global_step)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Show images side by side at their step."""
        self._foreign.arguments("add_images", {"walltime": walltime})
        self._log({tag: Image(img_tensor, layout=dataformats)}, "", global_step)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Show a Matplotlib figure, or a list of them, as images at their step."""
        self._foreign.arguments("add_figure", {"walltime": walltime})
        for drawn in figure if isinstance(figure, (list, tuple)) else [figure]:
            self._log({tag: Image(drawn)}, "", global_step)
            pyplot = sys.modules.get("matplotlib.pyplot")
            if close and pyplot is not None:
                pyplot.close(drawn)

    def __getattr__(self, name: str) -> Any:
        """A further method of TensorBoard's writers, which counts what is not kept, or says what it is.

        Raises:
            AttributeError: there is none of this name.
        """
        kind = KINDS.get(name)
        if kind is None and not name.startswith("add_"):
            raise AttributeError(f"SummaryWriter has no attribute {name!r}")

        def count(*arguments: Any, **options: Any) -> None:
            self._foreign.not_kept(kind or name.removeprefix("add_"))

        return count

    def _get_file_writer(self) -> FileWriter:
        """What Lightning writes summaries to."""
        return FileWriter(self)

    @property
    def file_writer(self) -> FileWriter:
        """See `_get_file_writer`."""
        return FileWriter(self)

    @property
    def all_writers(self) -> dict[str, FileWriter]:
        """The writers by their folders: one."""
        return {self._log_dir: FileWriter(self)}

    def _name_algorithm(self) -> None:
        """Send the default name of the algorithm, once; the server ignores it if a setting has named one."""
        algorithm, self._default_algorithm = self._default_algorithm, None
        if algorithm is not None:
            self.run._describe({"algorithm": algorithm})

    def _log(self, values: Any, prefix: str, global_step: Any) -> None:
        """Log the values of several tags, with a prefix before each tag."""
        self._name_algorithm()
        prefixed: Any = {}
        try:
            for tag, value in values.items():
                prefixed[prefix + as_text(tag) if prefix else tag] = value
        except Exception as error:  # of any object
            pass_on(error)
            prefixed = values
        self.run.log(prefixed, agent_steps=self._step(global_step))

    def _step(self, global_step: Any) -> Any:
        """The given step, or the last one. The run handles a step that cannot be read."""
        if global_step is None:
            return self._last_step
        steps = as_steps(global_step).value
        if steps is not None:
            self._last_step = steps
        return global_step


class FileWriter:
    """What torch's writer writes summaries to, as far as Lightning uses it."""

    def __init__(self, writer: SummaryWriter) -> None:
        """Write to the run of a writer."""
        self._writer = writer

    def add_summary(
        self, summary: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Log the scalars and hyperparameters of a summary; count its other values."""
        for value in getattr(summary, "value", ()):
            plugin = value.metadata.plugin_data
            if value.HasField("simple_value"):
                self._writer.add_scalar(value.tag, value.simple_value, global_step)
            elif plugin.plugin_name == "hparams":
                from callboard.imports.tensorboard import settings_of

                self._writer._update(settings_of(plugin.content))
            else:
                self._writer._foreign.not_kept("summaries")

    def get_logdir(self) -> str:
        """The folder that the writer was given."""
        return self._writer.log_dir

    def add_event(self, *arguments: Any, **options: Any) -> None:
        """Count an event that is not kept."""
        self._writer._foreign.not_kept("events")

    add_graph = add_event

    def flush(self) -> None:
        """Do nothing: everything is sent within a second."""

    close = reopen = flush


def _run_of_wandb() -> ExternalRun | None:
    """The run of `callboard.wandb.init`, if there is one: a script that logs to both has one run."""
    module = sys.modules.get("callboard.wandb.active")
    run = None if module is None else module.ACTIVE.get("run")
    return None if run is None else run.share()


def _script() -> str:
    return Path(sys.argv[0] if sys.argv else "").stem or "script"


def _from_folder(log_dir: str) -> dict[str, Any]:
    """Name, algorithm, environment and perhaps seed, from the name of a folder or of the script."""
    name = Path(log_dir).name or _script()
    fields: dict[str, Any] = {"name": name, "algorithm": UNKNOWN, "environment": UNKNOWN}
    fields |= described_by_folder(Path(log_dir)) if log_dir else {}
    most = {"name": MAX_NAME, "algorithm": MAX_ALGORITHM, "environment": MAX_ENVIRONMENT}
    return {
        field: plain_word(value, most[field]) if isinstance(value, str) else value
        for field, value in fields.items()
    }
