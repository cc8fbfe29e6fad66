import { ActionIcon, Skeleton, useComputedColorScheme } from '@mantine/core';
import { IconZoomReset } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { Data, Layout, PlotlyHTMLElement } from 'plotly.js';
import { useMemo, useRef, type ReactNode } from 'react';
import { figureQuery } from '@/api/figures';
import {
  chartQuery,
  NO_SMOOTHING,
  type Chart as Series,
  type Curve,
  type Range,
  type Spread,
} from '@/api/series';
import { Chart } from './Chart';
import { ChartMenu } from './ChartMenu';
import { useCurveView } from './curveView';
import { fill, shownOfTotal, withoutEmptyShares } from './fill';
import { type LegendNames, withShortNames } from './legend';
import { inPanel, yAxis } from './scale';
import { Problem } from '@/components/feedback';
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
  figure: { metric?: string; panel?: string };
  /** Changes when the figure may have new marks, which the series do not contain. */
  version?: string;
  spread?: Spread | undefined;
  /** What runs are called in the legend and the tooltip; without it, by their names. */
  names?: LegendNames;
  /** Hidden runs; hiding one does not change the others. */
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

/** Runs are hidden by their chips, together with their evaluations, not by the legend. */
const INERT = { itemclick: false, itemdoubleclick: false } as const;
const NOTHING: ReadonlySet<string> = new Set();
/** Evaluations are means already. */
const isMean = (metric: string): boolean => metric.startsWith('eval/');
/** Drawn as it is: a learning rate follows its schedule. */
const isExact = (metric: string): boolean => isMean(metric) || metric === 'optim/learning_rate';

const isShown = (trace: Data, hidden: ReadonlySet<string>): boolean =>
  !hidden.has((trace as { meta?: { run?: string } }).meta?.run ?? '');

/** The number of points and what the bands are. */
function summaryOf({ series, groups }: Series, zoom: Range | null, log: boolean): string {
  const several = groups.filter(({ runs }) => runs.length > 1);
  const bands = several.map(({ interval, seed_values }) => (seed_values.length ? '' : 'band: ') + interval);
  // What is fetched of a zoom is wider than the view; buckets may be merged.
  const inView = ({ x, bucket }: { x: Curve['x']; bucket?: Curve['bucket'] }, [from, to]: Range): number =>
    x.reduce<number>((sum, at, index) => {
      const size = bucket ? (bucket[index] ?? 0) - (bucket[index - 1] ?? -1) : 1;
      return at !== null && at >= from && at <= to ? sum + size : sum;
    }, 0);
  const counted = [...series, ...groups].map((one) => (zoom ? { ...one, n_shown: inView(one, zoom) } : one));
  return counted.length > 0 ? [shownOfTotal(counted, log), ...new Set(bands)].join('; ') : '';
}

/** A chart with its heading and menu, for one or several runs. */
export function ChartPanel(props: ChartPanelProps) {
  const { runs, title, monospace, main, label, fileName, id, metrics, source, figure: drawn } = props;
  const {
    version = '',
    spread,
    names,
    hidden = NOTHING,
    height,
    points,
    grip,
    controls,
    menu,
    empty,
  } = props;
  const client = useQueryClient();
  const scheme = useComputedColorScheme('light');
  const element = useRef<PlotlyHTMLElement>(null);
  const { view, change } = useCurveView();
  const { x, zoom } = view;
  const log = view.log.includes(id);
  const axes = { x, zoom, points, smoothing: metrics.every(isMean) ? NO_SMOOTHING : view.smoothing };
  const chart = useQuery(chartQuery(client, { runs, metrics, source: source ?? [], axes, spread }));
  const { data } = chart;
  // A new source, group or seed adds a trace to the figure.
  const parts = data && [
    ...data.series.map((one) => `${one.run} ${one.metric} ${one.source}`),
    ...data.groups.map((one) => `${one.id} ${one.runs.length}`),
  ];
  const figure = useQuery(
    figureQuery(
      // Its points are those of the other charts, so that one request brings them all.
      {
        runs,
        axes: metrics.every(isExact) ? { ...axes, smoothing: NO_SMOOTHING } : axes,
        theme: scheme,
        source: source ?? [],
        spread,
        ...drawn,
      },
      `${version} ${parts?.join(',') ?? ''}`,
    ),
  );
  const drawing = useMemo(() => {
    const traces = figure.data && data ? withoutEmptyShares(fill(figure.data, data)) : [];
    const kept = traces.filter((trace) => isShown(trace, hidden));
    const shown = names ? withShortNames(kept, names) : kept;
    const layout: Partial<Layout> = inPanel(figure.data?.layout, log);
    const { title: axisTitle, ...yaxis } = layout.yaxis ?? {};
    const entries = shown.filter((trace) => (trace as { showlegend?: boolean }).showlegend !== false);
    return {
      data: shown,
      layout: {
        ...layout,
        ...(main ? {} : { showlegend: entries.length > 1 }),
        ...(runs.length > 1 && !spread && { legend: { ...layout.legend, ...INERT } }),
        yaxis: { ...yaxis, ...(!monospace && axisTitle && { title: axisTitle }), ...yAxis(shown, zoom, log) },
      },
      view: `${runs.join(' ')} ${title} ${x} ${log} ${spread?.centre} ${spread?.interval}`,
    };
  }, [figure.data, data, hidden, log, main, monospace, names, runs, spread, title, x, zoom]);
  const shown = useSettled(drawing, !chart.isPlaceholderData && !figure.isPlaceholderData);
  const error = chart.error ?? figure.error;
  const isEmpty = empty && chart.isSuccess && !chart.isPlaceholderData && !zoom && parts?.length === 0;
  const Heading = main ? 'h2' : 'span';
  return (
    <>
      <header className={main ? classes.head : 'row'}>
        {grip}
        <Heading
          className={`${main ? '' : 'grow ellipsis'} ${monospace ? 'num' : 'section-title'}`}
          title={title}
        >
          {title}
        </Heading>
        <span
          className={`muted ${main ? '' : 'nowrap'}`}
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
          element={element}
          curves={data?.series ?? []}
          x={x}
          name={fileName}
          log={log}
          onLog={(to) => change({ log: to ? [...view.log, id] : view.log.filter((each) => each !== id) })}
        >
          {menu}
        </ChartMenu>
      </header>
      {error ? (
        <Problem error={error} onRetry={() => void Promise.all([chart.refetch(), figure.refetch()])} />
      ) : isEmpty ? (
        <div style={{ minHeight: height }} className={classes.empty}>
          {empty}
        </div>
      ) : data && figure.data ? (
        <Chart
          label={label}
          data={shown.data}
          layout={shown.layout}
          height={height}
          view={shown.view}
          onReady={(ready) => (element.current = ready)}
        />
      ) : (
        <div role="status" aria-label={`Loading ${title}…`}>
          <Skeleton height={height} radius={2} />
        </div>
      )}
    </>
  );
}
