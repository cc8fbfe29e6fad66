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
from callboard.handlers import pass_on
from callboard.limits import MAX_ALGORITHM, MAX_ENVIRONMENT, MAX_NAME
from callboard.starting import init
from callboard.tally import warn

if TYPE_CHECKING:
    from typing import Self


class SummaryWriter:
    """Logs to a run as `torch.utils.tensorboard.SummaryWriter` logs to a folder.

    Scalars, text and videos are kept. Histograms, images, audio, figures, graphs and the like are accepted,
    counted in `n_not_kept`, and reported once each. `global_step` is read as agent steps.

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
            purge_step: ignored, as the following three; accepted for compatibility.
            max_queue: ignored.
            flush_secs: ignored.
            filename_suffix: ignored.
            run: log to this run, which stays open, instead of starting one.
            algorithm: name of the method.
            environment: id of the environment.
            options: others of `callboard.init`.
        """
        self.n_not_kept: dict[str, int] = {}
        self._log_dir = "" if log_dir is None else os.fspath(log_dir)
        self._own = run is None
        self._default_algorithm: str | None = None
        if run is None:
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

    def add_histogram(self, *arguments: Any, **options: Any) -> None:
        """Count a histogram that is not kept."""
        self._not_kept("histograms")

    def add_histogram_raw(self, *arguments: Any, **options: Any) -> None:
        """Count a histogram that is not kept."""
        self._not_kept("histograms")

    def add_image(self, *arguments: Any, **options: Any) -> None:
        """Count an image that is not kept."""
        self._not_kept("images")

    def add_images(self, *arguments: Any, **options: Any) -> None:
        """Count images that are not kept."""
        self._not_kept("images")

    def add_image_with_boxes(self, *arguments: Any, **options: Any) -> None:
        """Count an image that is not kept."""
        self._not_kept("images")

    def add_figure(self, *arguments: Any, **options: Any) -> None:
        """Count a figure that is not kept."""
        self._not_kept("figures")

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
            self._not_kept("videos")

    def add_audio(self, *arguments: Any, **options: Any) -> None:
        """Count a sound that is not kept."""
        self._not_kept("sounds")

    def add_graph(self, *arguments: Any, **options: Any) -> None:
        """Count a graph that is not kept."""
        self._not_kept("graphs")

    def add_embedding(self, *arguments: Any, **options: Any) -> None:
        """Count an embedding that is not kept."""
        self._not_kept("embeddings")

    def add_pr_curve(self, *arguments: Any, **options: Any) -> None:
        """Count a curve that is not kept."""
        self._not_kept("precision-recall curves")

    def add_mesh(self, *arguments: Any, **options: Any) -> None:
        """Count a mesh that is not kept."""
        self._not_kept("meshes")

    def add_custom_scalars(self, *arguments: Any, **options: Any) -> None:
        """Count a layout that is not kept."""
        self._not_kept("layouts")

    def add_custom_scalars_marginchart(self, *arguments: Any, **options: Any) -> None:
        """Count a layout that is not kept."""
        self._not_kept("layouts")

    def add_custom_scalars_multilinechart(self, *arguments: Any, **options: Any) -> None:
        """Count a layout that is not kept."""
        self._not_kept("layouts")

    def add_onnx_graph(self, *arguments: Any, **options: Any) -> None:
        """Count a graph that is not kept."""
        self._not_kept("graphs")

    def add_pr_curve_raw(self, *arguments: Any, **options: Any) -> None:
        """Count a curve that is not kept."""
        self._not_kept("precision-recall curves")

    def add_tensor(self, *arguments: Any, **options: Any) -> None:
        """Count a tensor that is not kept."""
        self._not_kept("tensors")

    def _not_kept(self, kind: str) -> None:
        if kind not in self.n_not_kept:
            warn("callboard: %s are not kept", kind)
        self.n_not_kept[kind] = self.n_not_kept.get(kind, 0) + 1

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


def _script() -> str:
    return Path(sys.argv[0] if sys.argv else "").stem or "script"


def _from_folder(log_dir: str) -> dict[str, Any]:
    """Name, algorithm, environment and perhaps seed, from the name of a folder or of the script."""
    name = Path(log_dir).name or _script()
    fields: dict[str, Any] = {"name": name, "algorithm": UNKNOWN, "environment": UNKNOWN}
    parts = name.split("__")
    if len(parts) >= 3:
        fields |= {"environment": parts[0], "algorithm": parts[1]}
        if parts[2].isdecimal() and len(parts[2]) < 10:
            fields["seed"] = int(parts[2])
    most = {"name": MAX_NAME, "algorithm": MAX_ALGORITHM, "environment": MAX_ENVIRONMENT}
    return {
        field: plain_word(value, most[field]) if isinstance(value, str) else value
        for field, value in fields.items()
    }
