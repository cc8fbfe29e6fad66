"""The fields of the list of runs, and the metrics in its columns.

Apart from `service`, which reads the points of given runs: this reads no point.
"""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from backend.analysis.metrics import repository
from backend.analysis.metrics.schemas import FieldOut, FieldsOut, MetricSummaries, MetricSummary
from backend.drawing.catalogue import describe
from backend.runs.runs.conditions import external_settings, labels
from backend.runs.runs.fields import RUN_FIELDS, STATISTICS, MetricField, config_fields, field_of_metric


def listing(session: Session) -> FieldsOut:
    """Every field that a filter may name."""
    labelled = labels(session)
    fields = [
        FieldOut(
            name=name,
            title=name.replace("_", " ").capitalize(),
            kind=kind,
            origin="run",
            values=labelled.get(name, []),
        )
        for name, kind in RUN_FIELDS.items()
    ]
    fields += [
        FieldOut(
            name=setting.name,
            title=setting.title,
            kind=setting.kind,
            origin="setting",
            unit=setting.unit,
            values=list(setting.values),
        )
        for setting in config_fields().values()
    ]
    fields += [
        FieldOut(name=f"config.{name}", title=name, kind="any", origin="setting")
        for name in external_settings(session)
        if f"config.{name}" not in config_fields()
    ]
    fields += [
        FieldOut(name=field_of_metric(name), title=describe(name).title, kind="number", origin="metric")
        for name in repository.metric_names(session)
    ]
    return FieldsOut(items=fields, statistics=list(STATISTICS))


def summaries(session: Session, run_ids: Sequence[str], metrics: Sequence[str]) -> MetricSummaries:
    """Statistics of metrics of runs; unknown runs and metrics are left out."""
    items = []
    for series in repository.summaries(session, run_ids, metrics):
        values = {
            "last": series.last_value,
            "mean": series.mean_value,
            "min": series.min_value,
            "max": series.max_value,
        }
        values["best"] = values[MetricField(series.metric, "best").stored]
        items.append(MetricSummary(run=series.run_id, metric=series.metric, **values))
    return MetricSummaries(items=items)
