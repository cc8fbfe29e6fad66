"""What the names and arguments of torch's and tensorboardX's `SummaryWriter` mean in Callboard's."""

from __future__ import annotations

from callboard.foreign import USED, Table

KINDS = {
    "add_image_with_boxes": "images with boxes",
    "add_audio": "sounds",
    "add_graph": "graphs",
    "add_onnx_graph": "graphs",
    "add_openvino_graph": "graphs",
    "add_embedding": "embeddings",
    "add_pr_curve": "precision-recall curves",
    "add_pr_curve_raw": "precision-recall curves",
    "add_mesh": "meshes",
    "add_custom_scalars": "layouts",
    "add_custom_scalars_marginchart": "layouts",
    "add_custom_scalars_multilinechart": "layouts",
    "add_tensor": "tensors",
    "export_scalars_to_json": "files of scalars",
}
"""Methods that are accepted, and what each gives that is counted as not kept."""
_USED = {
    "SummaryWriter": "log_dir comment purge_step run algorithm environment logdir",
    "add_scalar": "tag scalar_value global_step new_style double_precision display_name summary_description",
    "add_scalars": "main_tag tag_scalar_dict global_step",
    "add_text": "tag text_string global_step",
    "add_hparams": "hparam_dict metric_dict global_step",
    "add_histogram": "tag values global_step",
    "add_histogram_raw": "tag min max bucket_limits bucket_counts global_step",
    "add_image": "tag img_tensor global_step dataformats",
    "add_images": "tag img_tensor global_step dataformats",
    "add_figure": "tag figure global_step close",
    "add_video": "tag vid_tensor global_step fps",
    "flush": "",
    "close": "",
    "get_logdir": "",
    "file_writer": "",
    "all_writers": "",
}
_BINS = "a histogram has 64 bins, or one for each of fewer whole numbers"
_AT_ONCE = "everything is sent within a second"
TABLE: Table = {
    **dict.fromkeys(_USED, USED),
    **{f"{name}.{argument}": USED for name, arguments in _USED.items() for argument in arguments.split()},
    **{name: f"{kind} are not kept" for name, kind in KINDS.items()},
    "*.walltime": "a value has the time at which it is logged",
    "SummaryWriter.max_queue": _AT_ONCE,
    "SummaryWriter.flush_secs": _AT_ONCE,
    "SummaryWriter.filename_suffix": "no file is written",
    "SummaryWriter.write_to_disk": "nothing is written to its folder",
    "SummaryWriter.comet_config": "log to Comet beside it",
    "add_histogram.bins": _BINS,
    "add_histogram.max_bins": _BINS,
    "add_histogram_raw.*": "they follow from the buckets",
    "add_hparams.hparam_domain_discrete": "the values of a setting are those of the runs",
    "add_hparams.*": "the settings are those of the run",
}
