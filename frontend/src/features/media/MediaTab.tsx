import { Button, Slider, useComputedColorScheme } from '@mantine/core';
import { useIntersection } from '@mantine/hooks';
import { IconFileExport } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo, useState } from 'react';
import {
  distributionQuery,
  histogramQuery,
  mediaItemQuery,
  mediaQuery,
  tableQuery,
  type MediaSeries,
} from '@/api/media';
import { spreadEpisodesQuery } from '@/api/runResources';
import { EPISODE_RETURN } from '@/api/series';
import { useMediaUrl, withTicket } from '@/api/session';
import type { RunDetail } from '@/api/runs';
import type { Figure, Meta } from '@/api/tails';
import { ServedFigure, useFittingWidth } from '@/components/chart/ServedFigure';
import { ExportButton } from '@/components/chart/export/ExportFigure';
import { sourceAt } from '@/components/chart/export/source';
import { useDownload } from '@/components/download';
import { Empty, Loading, Problem } from '@/components/feedback';
import { ScrollPanel } from '@/components/ScrollPanel';
import { served } from '@/lib/base';
import { formatCount, formatInteger, formatScore } from '@/lib/format';
import { isExternal, stepsOf } from '@/lib/run';
import { itemsAt, placeAt, unionOfSteps } from './steps';
import classes from './media.module.css';

type Props = {
  run: RunDetail;
  /** The agent step that is shown; undefined for the latest. */
  at: number | undefined;
  onAt: (step: number | undefined) => void;
  /** Plays an episode. */
  onWatch: (episode: string) => void;
};

/** Histograms, images and tables of a run, all at the step of one slider. */
export default function MediaTab({ run, at, onAt, onWatch }: Props) {
  const { data, error, refetch } = useQuery(mediaQuery(run.id));
  const { onClick, problem } = useDownload();
  const steps = useMemo(() => unionOfSteps(data?.items ?? []), [data]);
  if (error && !data) return <Problem error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading label="Loading histograms and images" lines={8} />;
  const of = (kind: MediaSeries['kind']) => data.items.filter((series) => series.kind === kind);
  const step = at === undefined ? (steps.at(-1) ?? 0) : (steps[placeAt(steps, at)] ?? 0);
  return (
    <div className={classes.media}>
      {data.n_not_kept > 0 && (
        <p className="muted" role="status">
          {formatInteger(data.n_not_kept)} {data.n_not_kept === 1 ? 'item' : 'items'} beyond the bound of
          10,000, or 1 GiB, {data.n_not_kept === 1 ? 'was' : 'were'} not kept.
        </p>
      )}
      {steps.length === 0 ? (
        <Empty>No histograms, images or tables yet.</Empty>
      ) : (
        <>
          <StepSlider unit={stepsOf(run).slice(0, -1)} steps={steps} step={step} onAt={onAt}>
            <Button
              component="a"
              href={withTicket(served(`/api/v1/runs/${run.id}/media/export`))}
              download
              onClick={onClick}
              variant="subtle"
              color="gray"
              size="compact-xs"
              leftSection={<IconFileExport size={14} />}
            >
              Download all
            </Button>
          </StepSlider>
          {problem}
          <div className={classes.figures}>
            {of('histogram').map((series) => (
              <HistogramPanel key={series.metric} run={run} series={series} step={step} onWatch={onWatch} />
            ))}
          </div>
          {of('image').length > 0 && (
            <div className={classes.images}>
              {of('image').map((series) => (
                <ImagePanel
                  key={series.metric}
                  series={series}
                  step={step}
                  unit={stepsOf(run).slice(0, -1)}
                />
              ))}
            </div>
          )}
          {of('table').map((series) => (
            <TablePanel key={series.metric} series={series} step={step} unit={stepsOf(run).slice(0, -1)} />
          ))}
        </>
      )}
    </div>
  );
}

type SliderProps = {
  unit: string;
  steps: readonly number[];
  step: number;
  onAt: (step: number | undefined) => void;
  children: ReactNode;
};

/** Moves over the steps that have something; at the right end it follows what is new. */
function StepSlider({ unit, steps, step, onAt, children }: SliderProps) {
  const last = steps.length - 1;
  const place = placeAt(steps, step);
  const [dragged, setDragged] = useState<number | null>(null);
  const shown = steps[dragged ?? place] ?? 0;
  const name = `${unit.charAt(0).toUpperCase()}${unit.slice(1)} ${formatInteger(shown)}`;
  return (
    <div className={`panel ${classes.slider}`}>
      <Slider
        size="sm"
        min={0}
        max={Math.max(1, last)}
        step={1}
        disabled={last === 0}
        value={dragged ?? place}
        label={(number) => formatCount(steps[number] ?? 0)}
        onChange={setDragged}
        onChangeEnd={(number) => {
          setDragged(null);
          onAt(number === last ? undefined : steps[number]);
        }}
        thumbLabel={`${name}, of all media`}
        className="grow"
      />
      <span className={`num ${classes.step}`}>
        {name}{' '}
        <span className="muted">
          ({formatInteger((dragged ?? place) + 1)} of {formatInteger(last + 1)})
        </span>
      </span>
      {children}
    </div>
  );
}

/** Of figures in a panel, as the service lays them out. */
const HEIGHT = 300;
const BARS_HEIGHT = 240;
/** Figures are drawn when they come near to the view: a network may have many layers. */
const NEAR_VIEWPORT = { rootMargin: '400px' };

type HistogramProps = {
  run: RunDetail;
  series: MediaSeries;
  step: number;
  onWatch: (episode: string) => void;
};

function HistogramPanel(props: HistogramProps) {
  const { ref, entry } = useIntersection<HTMLElement>(NEAR_VIEWPORT);
  const { run, series } = props;
  const { metric } = series;
  return (
    <section ref={ref} className={`panel ${classes.figure}`} aria-label={`Distribution of ${metric}`}>
      <header className="row">
        <h3 className={`section-title ${classes.name}`} title={metric}>
          {metric}
        </h3>
        <span className="grow" />
        <ExportButton
          source={sourceAt({ name: 'distribution', title: metric }, '/api/v1/figures/distribution', {
            run: run.id,
            metric,
          })}
        />
      </header>
      {entry?.isIntersecting ? <Figures {...props} /> : <div style={{ height: HEIGHT + BARS_HEIGHT }} />}
    </section>
  );
}

function Figures({ run, series, step, onWatch }: HistogramProps) {
  const theme = useComputedColorScheme('light');
  const [box, width] = useFittingWidth();
  const [failed, setFailed] = useState<unknown>(null);
  const { metric, agent_steps } = series;
  const { at } = itemsAt(series, step);
  const look = { theme, width };
  const isOfEpisodes = metric === EPISODE_RETURN && !isExternal(run);
  /** The bin, of the histogram at a step, whose episodes are listed; null for all. */
  const [chosen, setChosen] = useState<{ at: number; bin: number } | null>(null);
  const bin = chosen?.at === at ? chosen.bin : null;
  const over = useQuery(distributionQuery(run.id, metric, agent_steps.length, look));
  const single = useQuery(histogramQuery(run.id, metric, at, look));
  const problem = over.error ?? single.error ?? failed;
  const marked = useMemo(() => over.data && withMark(over.data, at, theme), [over.data, at, theme]);
  return (
    <div ref={box} style={{ minHeight: HEIGHT + BARS_HEIGHT }}>
      {problem ? (
        <Problem
          error={problem}
          onRetry={() => {
            setFailed(null);
            void over.refetch();
            void single.refetch();
          }}
        />
      ) : (
        <>
          {marked && <ServedFigure figure={marked} label={`${metric} over training`} onFailed={setFailed} />}
          {single.data && (
            <ServedFigure
              figure={single.data}
              label={`Histogram of ${metric} at ${formatInteger(at)}`}
              onFailed={setFailed}
              onPoint={isOfEpisodes ? (number) => setChosen({ at, bin: number }) : undefined}
            />
          )}
          {single.data && isOfEpisodes && (
            <EpisodesOfBin
              run={run.id}
              steps={[(agent_steps[agent_steps.indexOf(at) - 1] ?? -1) + 1, at]}
              returns={bin === null ? null : rangeOf(single.data, bin)}
              onAll={() => setChosen(null)}
              onWatch={onWatch}
            />
          )}
        </>
      )}
    </div>
  );
}

/** The edges of a bin of a drawn histogram; null if it has none of this number. */
function rangeOf(figure: Figure, bin: number): [number, number] | null {
  const [bars] = figure.data as readonly { meta?: Meta }[];
  const low = bars?.meta?.low?.[bin];
  const high = bars?.meta?.high?.[bin];
  return low === undefined || high === undefined ? null : [low, high];
}

type EpisodesProps = {
  run: string;
  /** The agent steps since the histogram before, and at its own. */
  steps: readonly [number, number];
  /** The returns of the bin; null for all. */
  returns: readonly [number, number] | null;
  onAll: () => void;
  onWatch: (episode: string) => void;
};

/** At most this many episodes are listed. */
const N_EPISODES = 100;

/** The recorded episodes that a histogram of returns, or a bin of it, has counted. */
function EpisodesOfBin({ run, steps, returns, onAll, onWatch }: EpisodesProps) {
  const { data } = useQuery(spreadEpisodesQuery(run, N_EPISODES, steps));
  const slack = returns ? 1e-9 * Math.max(Math.abs(returns[0]), Math.abs(returns[1]), 1) : 0;
  const episodes = (data ?? []).filter(
    ({ kind, episode_return }) =>
      kind === 'training' &&
      (!returns ||
        (episode_return !== null &&
          episode_return >= returns[0] - slack &&
          episode_return <= returns[1] + slack)),
  );
  return (
    <div className={classes.episodes}>
      <span className="muted">
        {returns
          ? `Recorded episodes with a return from ${formatScore(returns[0])} to ${formatScore(returns[1])}:`
          : 'Recorded episodes (a bar lists its own):'}
      </span>
      {episodes.length === 0 && <span className="muted">none</span>}
      {episodes.map(({ id, episode_return, agent_steps }) => (
        <Button
          key={id}
          size="compact-xs"
          variant="default"
          aria-label={`Watch the episode with return ${formatScore(episode_return)} at ${formatInteger(agent_steps)}`}
          onClick={() => onWatch(id)}
        >
          {formatScore(episode_return)}
        </Button>
      ))}
      {returns && (
        <Button size="compact-xs" variant="subtle" onClick={onAll}>
          All
        </Button>
      )}
    </div>
  );
}

/** The figure with a line at the chosen step. */
const withMark = (figure: Figure, at: number, theme: 'light' | 'dark'): Figure => ({
  ...figure,
  layout: {
    ...figure.layout,
    shapes: [
      {
        type: 'line',
        xref: 'x',
        yref: 'paper',
        x0: at,
        x1: at,
        y0: 0,
        y1: 1,
        line: { width: 1, dash: 'dot', color: theme === 'light' ? '#59616c' : '#9da5b0' },
      },
    ],
  },
});

type PanelProps = { series: MediaSeries; step: number; unit: string };

function PanelHead({ metric, at, unit }: { metric: string; at: number; unit: string }) {
  return (
    <header className="row wrap">
      <h3 className="section-title">{metric}</h3>
      <span className="muted num">
        at {unit} {formatInteger(at)}
      </span>
    </header>
  );
}

function ImagePanel({ series, step, unit }: PanelProps) {
  const { at, ids } = itemsAt(series, step);
  return (
    <section className={`panel ${classes.imagePanel}`} aria-label={`Images of ${series.metric}`}>
      <PanelHead metric={series.metric} at={at} unit={unit} />
      <div className={classes.row}>
        {ids.map((id) => (
          <Picture key={id} id={id} name={`${series.metric} at ${unit} ${formatInteger(at)}`} />
        ))}
      </div>
    </section>
  );
}

/** Small images are enlarged, with their pixels visible. */
const SMALL_PX = 200;

function Picture({ id, name }: { id: string; name: string }) {
  const { data } = useQuery(mediaItemQuery(id));
  const src = useMediaUrl(served(`/api/v1/media/${id}/file`));
  const [broken, setBroken] = useState(false);
  const width = data?.width ?? 0;
  const enlarged = width > 0 ? Math.max(1, Math.floor(SMALL_PX / width)) * width : undefined;
  return (
    <figure className={classes.picture}>
      {broken ? (
        <p className="muted">The image cannot be shown.</p>
      ) : (
        <a href={src} target="_blank" rel="noreferrer">
          <img
            src={src}
            alt={data?.caption ? `${name}: ${data.caption}` : name}
            style={{ width: enlarged }}
            onError={() => setBroken(true)}
          />
        </a>
      )}
      {data?.caption && <figcaption className="muted">{data.caption}</figcaption>}
    </figure>
  );
}

function TablePanel({ series, step, unit }: PanelProps) {
  const { at, ids } = itemsAt(series, step);
  return (
    <section className={`panel ${classes.tablePanel}`} aria-label={`Table ${series.metric}`}>
      <PanelHead metric={series.metric} at={at} unit={unit} />
      {ids.map((id) => (
        <Cells key={id} id={id} label={series.metric} />
      ))}
    </section>
  );
}

function Cells({ id, label }: { id: string; label: string }) {
  const { data, error, refetch } = useQuery(tableQuery(id));
  if (error) return <Problem error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading label={`Loading ${label}`} lines={4} />;
  const isNumeric = data.columns.map((_, column) =>
    data.rows.every((row) => row[column] === null || typeof row[column] === 'number'),
  );
  return (
    <ScrollPanel label={label}>
      <table className="grid">
        <thead>
          <tr>
            {data.columns.map((name, column) => (
              <th key={column} className={isNumeric[column] ? 'right' : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {data.rows.map((row, number) => (
            <tr key={number}>
              {row.map((cell, column) => (
                <td key={column} className={isNumeric[column] ? 'right num' : undefined}>
                  {cell === null ? '' : String(cell)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollPanel>
  );
}
