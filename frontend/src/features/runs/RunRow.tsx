import { Checkbox } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { memo, type CSSProperties } from 'react';
import type { Run } from '@/api/runs';
import { searchOfStyle } from '@/components/chart/seriesStyles';
import { ProgressBar } from '@/components/ProgressBar';
import { ActionMenu } from '@/components/run/ActionMenu';
import { StateBadge } from '@/components/run/StateBadge';
import { Early, TruncatedName, RelativeTime } from '@/components/text';
import { shortEnvironmentName } from '@/lib/environments';
import { formatScore } from '@/lib/format';
import { isExternal, startOfName } from '@/lib/run';
import type { Column, RowData } from './columns';
import classes from './runs.module.css';

/** A run's card, for a phone. */
export function RunCard({ run, lineStyle }: { run: Run } & Pick<RowData, 'lineStyle'>) {
  return (
    <>
      <div role="gridcell" className="grow">
        <div className="row">
          <Link
            to="/runs/$runId"
            params={{ runId: run.id }}
            search={searchOfStyle(lineStyle)}
            className="ellipsis grow"
            aria-label={run.name}
          >
            <TruncatedName name={run.name} repeated={startOfName(run)} lines={2} />
          </Link>
          <StateBadge state={run.state} reason={run.state_reason} />
        </div>
        <div className="row muted">
          <span className="ellipsis grow">
            {run.algorithm} on {shortEnvironmentName(run.environment)}
            {isExternal(run) && ', external'}
          </span>
          <RelativeTime at={run.created_at} />
        </div>
        <div className="row">
          <span className="grow">
            <ProgressBar
              fraction={run.progress}
              timeLeft_s={run.time_left_s}
              label={`Progress of ${run.name}`}
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
        <ActionMenu run={run} />
      </div>
    </>
  );
}

type Props = {
  run: Run;
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
  onToggle: (id: string, through: boolean) => void;
};

/** One run: a table row, or a card on a phone. */
export const RunRow = memo(function RunRow(props: Props) {
  const {
    run,
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
    onToggle,
  } = props;
  const row = {
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
        aria-label={`Select ${run.name}`}
        checked={selected}
        onChange={(event) => onToggle(run.id, (event.nativeEvent as PointerEvent).shiftKey)}
      />
    </div>
  );
  if (narrow) {
    return (
      <div {...row} className={classes.card} style={style}>
        {select}
        <RunCard run={run} lineStyle={lineStyle} />
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
          className={id === 'actions' ? classes.menu : right ? 'right' : 'ellipsis'}
        >
          {cell(run, { spark, metrics, lineStyle, look })}
        </div>
      ))}
    </div>
  );
});
