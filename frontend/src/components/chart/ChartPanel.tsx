import { ActionIcon, Skeleton, useComputedColorScheme } from '@mantine/core';
import { IconZoomReset } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { Data, Layout } from 'plotly.js';
import { useEffect, useMemo, type ReactNode } from 'react';
import { type DrawnFigure, figureQuery, type MarksVersion } from '@/api/figures';
import { formatX, type Spread } from '@/api/series';
import type { Trace } from '@/api/tails';
import { Chart } from './Chart';
import { ChartMenu } from './ChartMenu';
import { withoutLine } from './gaps';
import { useCurveView } from './curveView';
import { curveSource } from './export/source';
import { onLogScale, outsideMarks, yAxis } from './scale';
import { summaryOf } from './summary';
import { Problem } from '@/components/feedback';
import { formatNumber } from '@/lib/format';
import { useSettled } from '@/lib/hooks';
import classes from './curves.module.css';

export type ChartPanelProps = {
  runs: readonly string[];
  title: string;
  /** Whether the title is a metric's name, shown in monospace; it then replaces the title of the y axis. */
  monospace?: boolean;
  /** Whether the panel is a section of the page. */
  main?: boolean;
  /** The accessible name of the chart. */
  label: string;
  /** The name of downloaded files. */
  fileName: string;
  /** The chart's name in the address. */
  id: string;
  metrics: readonly string[];
  source?: readonly string[];
  /** The service's figure: of a metric or a panel; without either, the learning curve. */
  figure: { metric?: string; panel?: string; scoredBy?: string | null };
  /** The version of the figure's marks, which the series do not contain. */
  marks?: MarksVersion | undefined;
  spread?: Spread | undefined;
  /** Draws the runs of one environment alone, in the styles that they have among all of them. */
  environment?: string | undefined;
  /** Hidden runs and groups; hiding one does not change the others. */
  hidden?: ReadonlySet<string>;
  height: number;
  points: number;
  /** Before the title: what moves the panel. */
  grip?: ReactNode;
  controls?: ReactNode;
  /** Further items of the chart's menu. */
  menu?: ReactNode;
  /** Shown in place of a chart without data. */
  empty?: ReactNode;
};

/** How long new marks wait for new points. */
const MARKS_MS = 10_000;
/** Runs are hidden by their chips, together with their evaluations, not by the legend. */
const INERT = { itemclick: false, itemdoubleclick: false } as const;
const NOTHING: ReadonlySet<string> = new Set();
/** Kinds of traces of a line and its band. */
const PLAIN: ReadonlySet<string> = new Set(['line', 'range', 'points', 'legend']);
const isShown = (trace: Data, hidden: ReadonlySet<string>): boolean =>
  !hidden.has((trace as Trace).meta?.run ?? '') && !hidden.has((trace as Trace).meta?.group ?? '');

/** The single point of a figure's only line; undefined for other figures. */
function onlyPoint({ data, n_total }: DrawnFigure): { x: number; y: number } | undefined {
  if (n_total !== 1) return undefined;
  const [line] = (data as readonly Trace[]).filter(({ meta }) => meta?.kind === 'line');
  const [x, y] = [line?.x?.[0], line?.y?.[0]];
  return typeof x === 'number' && typeof y === 'number' && Number.isFinite(y) ? { x, y } : undefined;
}

/** A chart with its heading and menu, for one or several runs. */
export function ChartPanel(props: ChartPanelProps) {
  const { runs, title, monospace, main, label, fileName, id, metrics, source, figure: drawn } = props;
  const { marks, spread, environment, hidden = NOTHING, height, points, grip, controls, menu, empty } = props;
  const client = useQueryClient();
  const scheme = useComputedColorScheme('light');
  const { view, change, styles } = useCurveView();
  const { x, zoom } = view;
  const log = view.log.includes(id);
  const axes = { x, zoom, points, smoothing: view.smoothing };
  const scored = drawn.metric === undefined && drawn.panel === undefined;
  const request = { runs, metrics, source: source ?? [], axes, scored };
  const figure = useQuery(
    figureQuery(client, { ...request, theme: scheme, spread, styles, environment, ...drawn }, marks),
  );
  const { data, refetch } = figure;
  const drawnMarks = figure.isPlaceholderData ? undefined : data?.marks;
  useEffect(() => {
    if (!marks || !drawnMarks) return undefined;
    if (drawnMarks.version !== marks.version) void refetch();
    else if (drawnMarks.period !== marks.period) {
      // The next points bring the new marks; if no points come, the marks are fetched alone.
      const timer = setTimeout(() => void refetch(), MARKS_MS);
      return () => clearTimeout(timer);
    }
    return undefined;
  }, [drawnMarks, marks, refetch]);
  const drawing = useMemo(() => {
    const shown = data?.data.filter((trace) => isShown(trace, hidden)) ?? [];
    const layout: Partial<Layout> = (log && data ? onLogScale(data.layout) : data?.layout) ?? {};
    const { title: axisTitle, ...yaxis } = layout.yaxis ?? {};
    const entries = (shown as readonly Trace[]).filter(({ showlegend }) => showlegend !== false);
    const lines = entries.filter(({ meta }) => meta?.kind === 'line');
    // The page names the only run, and the summary beside the title describes its band.
    const isPlain = lines.length <= 1 && entries.every(({ meta }) => PLAIN.has(meta?.kind ?? ''));
    return {
      data: shown,
      layout: {
        ...layout,
        // The summary above counts the values in view that are not finite.
        annotations: [
          ...(layout.annotations ?? []).filter((note) => !('name' in note && note.name === 'not_finite')),
          ...outsideMarks(shown, zoom, log),
        ],
        ...(main
          ? isPlain && { showlegend: false }
          : { showlegend: runs.length === 1 && entries.length > 1 && !isPlain }),
        ...(runs.length > 1 && !spread && { legend: { ...layout.legend, ...INERT } }),
        yaxis: { ...yaxis, ...(!monospace && axisTitle && { title: axisTitle }), ...yAxis(shown, zoom, log) },
      },
      view: `${runs.join(' ')} ${title} ${x} ${log} ${spread?.centre} ${spread?.interval} ${spread?.seeds}`,
    };
  }, [data, hidden, log, main, monospace, runs, spread, title, x, zoom]);
  const shown = useSettled(drawing, !figure.isPlaceholderData);
  const { error } = figure;
  const gap = data && !zoom ? withoutLine(data) : '';
  const isEmpty = empty && !figure.isPlaceholderData && !zoom && data?.n_total === 0;
  const only = main || zoom || !data ? undefined : onlyPoint(data);
  const Heading = main ? 'h2' : 'span';
  return (
    <>
      <header className={main ? classes.head : 'row'}>
        {grip}
        <Heading
          className={`${main ? '' : `ellipsis ${classes.name}`} ${monospace ? 'num' : 'section-title'}`}
          title={title}
        >
          {title}
        </Heading>
        <span
          className={`muted ${main ? '' : `ellipsis ${classes.summary}`}`}
          {...(main && { role: 'status', 'aria-label': 'Points drawn' })}
        >
          {data ? summaryOf(data, zoom, log) : ''}
        </span>
        {main && <span className="grow" />}
        {controls && <span className={classes.controls}>{controls}</span>}
        {zoom && (
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`Reset zoom of ${title}`}
            title="Reset zoom"
            onClick={() => change({ zoom: null })}
          >
            <IconZoomReset size={16} />
          </ActionIcon>
        )}
        <ChartMenu
          source={curveSource(
            { name: fileName, title },
            { ...request, theme: 'light', spread, styles, environment, ...drawn },
            { hidden, log, hasBands: Boolean(data?.bands.length) },
          )}
          name={fileName}
          log={log}
          onLog={(to) => change({ log: to ? [...view.log, id] : view.log.filter((other) => other !== id) })}
        >
          {menu}
        </ChartMenu>
      </header>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {error && !data ? null : isEmpty || gap ? (
        <div style={{ minHeight: height }} className={classes.empty}>
          {gap || empty}
        </div>
      ) : data && only ? (
        <div style={{ minHeight: height }} className={classes.empty}>
          <span className={classes.only}>
            <span className={classes.number}>{formatNumber(only.y)}</span>
            <span className="muted">{formatX(data.x ?? x, only.x)}</span>
          </span>
        </div>
      ) : data ? (
        <Chart
          label={label}
          x={data.x}
          data={shown.data}
          layout={shown.layout}
          height={height}
          view={shown.view}
          endNames={main ?? false}
          isListed={runs.length > 1}
        />
      ) : (
        <div role="status" aria-label={`Loading ${title}…`}>
          <Skeleton height={height} radius={2} />
        </div>
      )}
    </>
  );
}
