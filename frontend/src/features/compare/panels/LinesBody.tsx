import { Skeleton, useComputedColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Data } from 'plotly.js';
import { useMemo, useState } from 'react';
import { linesParameters, linesQuery, type LinesFigure, type LinesRequest } from '@/api/panelFigures';
import type { Range } from '@/api/series';
import type { Trace } from '@/api/tails';
import { Chart } from '@/components/chart/Chart';
import { CurveViewContext, type Place, Pointed, useCurveView } from '@/components/chart/curveView';
import { onLogScale, outsideMarks, yAxis } from '@/components/chart/scale';
import { Empty, Problem } from '@/components/feedback';
import type { Panel } from '@/components/run/panels';
import { plural } from '@/lib/format';
import type { BodyProps, PanelPage } from './kinds';
import classes from './panels.module.css';

/** Of a small and of a large chart. */
const [POINTS, FEW_POINTS, MAX_DETAILED_RUNS] = [500, 250, 10] as const;

type LineTrace = Trace & { meta?: { metric?: string; line?: number }; line?: { dash?: string } };

/** Several metrics and formulas; over another metric with a zoom and a crosshair of its own. */
export function LinesBody(props: BodyProps) {
  const { page } = props;
  const environments = page.environments.length > 1 ? page.environments : [undefined];
  const height = Math.max(100, Math.floor(props.height / environments.length));
  const lines = environments.map((environment) => (
    <Lines key={environment ?? ''} {...props} height={height} environment={environment} />
  ));
  return props.panel.x === undefined ? lines : <OwnAxis>{lines}</OwnAxis>;
}

/** A view for a chart whose x axis no other chart has. */
function OwnAxis({ children }: { children: React.ReactNode }) {
  const page = useCurveView();
  const [zoom, setZoom] = useState<Range | null>(null);
  const [crosshair] = useState(() => new Pointed<Place>());
  const own = useMemo(
    () => ({
      ...page,
      view: { ...page.view, zoom },
      change: (to: Partial<typeof page.view>) => setZoom(to.zoom ?? null),
      crosshair,
    }),
    [page, zoom, crosshair],
  );
  return <CurveViewContext value={own}>{children}</CurveViewContext>;
}

/** The request of a panel. */
function linesRequest(
  panel: Panel,
  page: PanelPage,
  { view, styles }: Pick<ReturnType<typeof useCurveView>, 'view' | 'styles'>,
  environment?: string,
): LinesRequest {
  const { x, zoom, smoothing } = view;
  return {
    runs: page.runs,
    metrics: panel.metrics ?? [],
    formulas: panel.formulas ?? [],
    xMetric: panel.x,
    axes: { x, zoom, smoothing, points: page.runs.length > MAX_DETAILED_RUNS ? FEW_POINTS : POINTS },
    spread: page.grouped ? page.spread : undefined,
    styles,
    environment,
  };
}

/** The parameters of what is drawn: each run keeps its style while others are hidden. */
export function drawnLines(panel: Panel, page: PanelPage, curves: Parameters<typeof linesRequest>[2]) {
  const { runs, notDrawn } = page;
  const given = curves.styles?.style;
  const style = runs.flatMap((run, at) => (notDrawn.has(run) ? [] : [given?.[at] ?? at]));
  return {
    ...linesParameters(linesRequest(panel, page, curves)),
    run: runs.filter((run) => !notDrawn.has(run)),
    ...(page.grouped ? {} : { style }),
  };
}

function Lines({ panel, page, height, environment }: BodyProps & { environment: string | undefined }) {
  const theme = useComputedColorScheme('light');
  const curves = useCurveView();
  const { zoom } = curves.view;
  const { data, error, refetch, isPlaceholderData } = useQuery(
    linesQuery(linesRequest(panel, page, curves, environment), theme),
  );
  const { notDrawn } = page;
  const log = panel.log ?? false;
  const drawing = useMemo(() => {
    if (!data) return undefined;
    const shown = data.data.filter((trace) => {
      const { meta } = trace as Trace;
      return !notDrawn.has(meta?.run ?? '') && !notDrawn.has(meta?.group ?? '');
    });
    const layout = log ? onLogScale(data.layout) : data.layout;
    const { title: _title, ...yaxis } = layout.yaxis ?? {};
    return {
      data: shown,
      layout: {
        ...layout,
        showlegend: false,
        annotations: [...(layout.annotations ?? []), ...outsideMarks(shown, zoom, log)],
        yaxis: { ...yaxis, ...yAxis(shown, zoom, log) },
      },
    };
  }, [data, notDrawn, log, zoom]);
  if (error && !data) return <Problem error={error} onRetry={() => void refetch()} />;
  if (!data || !drawing) return <Skeleton height={height} radius={2} />;
  const missing = missingOf(data);
  return (
    <>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      <LineKey data={data.data} />
      {data.n_total === 0 && !isPlaceholderData && !zoom ? (
        <div style={{ minHeight: height }}>
          <Empty>{missing || 'None of these runs has points of these metrics yet.'}</Empty>
        </div>
      ) : (
        <>
          <Chart
            label={`${[...(panel.metrics ?? []), ...(panel.formulas ?? [])].join(', ')} of the compared runs`}
            x={panel.x ?? data.x}
            data={drawing.data}
            layout={drawing.layout}
            height={height}
            view={`${page.runs.join(' ')} ${JSON.stringify(panel)} ${curves.view.x}`}
            isListed
          />
          {missing && <div className="muted">{missing}</div>}
        </>
      )}
    </>
  );
}

const missingOf = ({ missing }: LinesFigure): string =>
  missing
    .map(({ line, metrics, n_runs }) => `${plural(n_runs, 'run')} without ${metrics.join(', ')} for ${line}`)
    .join('; ');

const DASHES: Readonly<Record<string, string>> = {
  dash: '5 3',
  dot: '1 3',
  dashdot: '5 2 1 2',
  longdash: '9 3',
  longdashdot: '9 3 1 3',
};

/** Which dash or colour stands for which metric, if there are several. */
function LineKey({ data }: { data: readonly Data[] }) {
  const lines = new Map(
    (data as readonly LineTrace[]).flatMap(({ meta, line }) =>
      meta?.kind === 'line' && meta.metric !== undefined ? [[meta.metric, line] as const] : [],
    ),
  );
  if (lines.size < 2) return null;
  const colours = new Set([...lines.values()].map((line) => line?.color));
  return (
    <ul className={classes.key} aria-label="Lines">
      {[...lines].map(([metric, line]) => (
        <li key={metric}>
          <svg width="24" height="8" aria-hidden="true">
            <path
              d="M0 4H24"
              stroke={colours.size > 1 ? (line?.color ?? 'currentColor') : 'currentColor'}
              strokeWidth="2"
              strokeDasharray={
                DASHES[line?.dash ?? ''] ?? line?.dash?.replaceAll('px', '').replaceAll(',', ' ')
              }
            />
          </svg>
          <span className="num">{metric}</span>
        </li>
      ))}
    </ul>
  );
}
