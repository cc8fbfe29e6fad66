import { Checkbox } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { memo, type CSSProperties } from 'react';
import type { Run } from '@/api/runs';
import { searchOfStyle } from '@/components/chart/seriesStyles';
import { ProgressBar } from '@/components/ProgressBar';
import { ActionMenu } from '@/components/run/ActionMenu';
import { RunBadge } from '@/components/run/StateBadge';
import { Early, Name, RelativeTime } from '@/components/text';
import { shortEnvironmentName } from '@/lib/environments';
import { formatScore } from '@/lib/format';
import { isExternal } from '@/lib/run';
import type { Column, RowData } from './columns';
import classes from './runs.module.css';

/** A run's card, for a phone. */
export function RunCard({
  run,
  name,
  label,
  lineStyle,
}: { run: Run } & Pick<RowData, 'name' | 'label' | 'lineStyle'>) {
  return (
    <>
      <div role="gridcell" className="grow">
        <div className="row">
          <Link
            to="/runs/$runId"
            params={{ runId: run.id }}
            search={searchOfStyle(lineStyle)}
            className="grow"
            tabIndex={-1}
            aria-label={label}
          >
            <Name name={name} title={run.name} />
          </Link>
          <RunBadge run={run} />
        </div>
        <div className="row muted">
          <span className="ellipsis grow">
            {run.algorithm} on {shortEnvironmentName(run.environment)}
            {isExternal(run) && (run.command ? ', command' : ', external')}
          </span>
          <RelativeTime at={run.created_at} />
        </div>
        <div className="row">
          <span className="grow">
            <ProgressBar
              fraction={run.progress}
              timeLeft_s={run.time_left_s}
              label={`Progress of ${label}`}
              compact
            />
          </span>
          <span>
            score <span className="num">{formatScore(run.score)}</span>
            {run.score_is_early && <Early />}
          </span>
        </div>
      </div>
      <div role="gridcell">
        <ActionMenu run={run} label={label} tabIndex={-1} />
      </div>
    </>
  );
}

type Props = {
  run: Run;
  name: string;
  label: string;
  index: number;
  columns: readonly Column[];
  template: string;
  /** The least width of the row, in pixels. */
  width_px: number;
  narrow: boolean;
  selected: boolean;
  current: boolean;
  spark: RowData['spark'];
  metrics: RowData['metrics'];
  lineStyle: RowData['lineStyle'];
  look: RowData['look'];
  style: CSSProperties;
  /** Measures the row, which is as high as its name. */
  measure: (row: HTMLElement | null) => void;
  onToggle: (id: string, through: boolean) => void;
};

/** One run: a table row, or a card on a phone. */
export const RunRow = memo(function RunRow(props: Props) {
  const {
    run,
    name,
    label,
    index,
    columns,
    template,
    width_px,
    narrow,
    selected,
    current,
    spark,
    metrics,
    lineStyle,
    look,
    style,
    measure,
    onToggle,
  } = props;
  const row = {
    ref: measure,
    role: 'row',
    'aria-rowindex': index + 2,
    'aria-selected': selected,
    'data-index': index,
    tabIndex: current ? 0 : -1,
  };
  const select = (
    <div role="gridcell">
      <Checkbox
        size="xs"
        tabIndex={-1}
        aria-label={`Select ${label}`}
        checked={selected}
        onChange={(event) => onToggle(run.id, (event.nativeEvent as PointerEvent).shiftKey)}
      />
    </div>
  );
  if (narrow) {
    return (
      <div {...row} className={classes.card} style={style}>
        {select}
        <RunCard run={run} name={name} label={label} lineStyle={lineStyle} />
      </div>
    );
  }
  return (
    <div
      {...row}
      className={classes.row}
      style={{ ...style, gridTemplateColumns: template, minWidth: width_px }}
    >
      {select}
      {columns.map(({ id, right, cell }) => (
        <div
          key={id}
          role="gridcell"
          className={
            id === 'actions' ? classes.menu : right ? 'right' : id === 'name' ? classes.name : 'ellipsis'
          }
        >
          {cell(run, { name, label, spark, metrics, lineStyle, look })}
        </div>
      ))}
    </div>
  );
});
