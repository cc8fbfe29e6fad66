import { NativeSelect, Switch } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import type { ReactNode } from 'react';
import type { SweepDetail } from '@/api/sweeps';
import curves from '@/components/chart/curves.module.css';
import { Empty } from '@/components/feedback';
import { formatScore, formatValue, plural } from '@/lib/format';
import { scoresOf, standingOf, variedSettings } from './configurations';
import { axisOf, canBeLog, isLogByDefault, type Axis } from './scatterAxis';
import classes from './sweeps.module.css';

const HEIGHT = 300;
const MARGIN = { top: 8, right: 12, bottom: 44, left: 60 };
/** Until it is measured. */
const DEFAULT_WIDTH = 640;
const PX_PER_TICK = 56;
const MAX_TICKS = 8;

type Props = {
  sweep: SweepDetail;
  /** The setting in the URL, if any. */
  setting: string | undefined;
  onSetting: (setting: string) => void;
  /** Whether the axis is logarithmic; undefined: as suits the values. */
  log: boolean | undefined;
  onLog: (log: boolean) => void;
  /** The titles of the settings with their units, by path. */
  titles: ReadonlyMap<string, string>;
};

/** The score of each finished seed against a setting, with each configuration's interquartile mean. */
export function SettingScatter({ sweep, setting, onSetting, log, onLog, titles }: Props) {
  const { ref, width } = useElementSize();
  const paths = variedSettings(sweep);
  const path = setting !== undefined && paths.includes(setting) ? setting : paths[0];
  if (path === undefined) return null;
  const scored = sweep.configurations.filter(({ n }) => n > 0);
  const values = scored.map(({ settings }) => settings[path]);
  const isLog = canBeLog(values) && (log ?? isLogByDefault(values));
  const n_scores = scored.reduce((sum, { n }) => sum + n, 0);
  return (
    <section className={classes.section} aria-label="Score by hyperparameter">
      <header className={curves.head}>
        <h2 className="section-title">Score by hyperparameter</h2>
        <span className="grow" />
        <NativeSelect
          size="xs"
          aria-label="Hyperparameter"
          value={path}
          data={paths}
          onChange={({ currentTarget }) => onSetting(currentTarget.value)}
        />
        {canBeLog(values) && (
          <Switch
            size="xs"
            label="Log scale"
            checked={isLog}
            onChange={({ currentTarget }) => onLog(currentTarget.checked)}
          />
        )}
      </header>
      <div className={`panel ${classes.plot}`}>
        {scored.length === 0 ? (
          <Empty>No run of this sweep has finished yet: its score will be drawn here.</Empty>
        ) : (
          <>
            <div ref={ref} style={{ height: HEIGHT }}>
              <Plot
                sweep={sweep}
                path={path}
                xTitle={`${titles.get(path) ?? path}${isLog ? ', log scale' : ''}`}
                log={isLog}
                width={width || DEFAULT_WIDTH}
                label={`Score against ${path}: ${plural(n_scores, 'finished run')} of ${plural(scored.length, 'configuration')}`}
              />
            </div>
            <Legend eliminated={scored.some(({ eliminated }) => eliminated !== null)} />
          </>
        )}
      </div>
    </section>
  );
}

type PlotProps = {
  sweep: SweepDetail;
  path: string;
  xTitle: string;
  log: boolean;
  width: number;
  label: string;
};

function Plot({ sweep, path, xTitle, log, width, label }: PlotProps) {
  const scored = sweep.configurations.filter(({ n }) => n > 0);
  const plotWidth = width - MARGIN.left - MARGIN.right;
  const plotHeight = HEIGHT - MARGIN.top - MARGIN.bottom;
  const values = scored.map(({ settings }) => settings[path]);
  const x = axisOf(values, log, Math.min(MAX_TICKS, Math.max(2, Math.floor(plotWidth / PX_PER_TICK))));
  const y = axisOf(scored.flatMap(scoresOf), false, 5);
  const left = (value: unknown): number => MARGIN.left + (x.at(value) ?? 0) * plotWidth;
  const top = (score: number): number => MARGIN.top + (1 - (y.at(score) ?? 0)) * plotHeight;
  return (
    <svg role="img" aria-label={label} width={width} height={HEIGHT} className={classes.scatter}>
      <Axes x={x} y={y} width={width} xTitle={xTitle} yTitle={scoreTitle(sweep)} />
      {scored.map((configuration) => {
        const { number, settings, iqm, runs } = configuration;
        const value = settings[path];
        const of = `Configuration ${number}, ${path} ${formatValue(value)}`;
        return (
          <g key={number} data-standing={standingOf(sweep, configuration)}>
            {runs.map(
              ({ seed, score }) =>
                score !== null && (
                  <circle key={seed} className={classes.dot} cx={left(value)} cy={top(score)} r="3.5">
                    <title>{`${of}, seed ${seed}: score ${formatScore(score)}`}</title>
                  </circle>
                ),
            )}
            {iqm !== null && (
              <line
                className={classes.mean}
                x1={left(value) - 9}
                x2={left(value) + 9}
                y1={top(iqm)}
                y2={top(iqm)}
              >
                <title>{`${of}: interquartile mean ${formatScore(iqm)}`}</title>
              </line>
            )}
          </g>
        );
      })}
    </svg>
  );
}

function scoreTitle({ spec }: SweepDetail): string {
  return spec.objective === 'training' ? 'Mean return, last 100 episodes' : 'Mean return, last evaluation';
}

type AxesProps = { x: Axis; y: Axis; width: number; xTitle: string; yTitle: string };

function Axes({ x, y, width, xTitle, yTitle }: AxesProps) {
  const bottom = HEIGHT - MARGIN.bottom;
  const right = width - MARGIN.right;
  return (
    <>
      {y.ticks.map(({ at, label }) => {
        const top = MARGIN.top + (1 - at) * (bottom - MARGIN.top);
        return (
          <g key={label}>
            <line className={classes.grid} x1={MARGIN.left} x2={right} y1={top} y2={top} />
            <text x={MARGIN.left - 8} y={top} dy="0.32em" textAnchor="end">
              {label}
            </text>
          </g>
        );
      })}
      {x.ticks.map(({ at, label }) => {
        const left = MARGIN.left + at * (right - MARGIN.left);
        return (
          <g key={label}>
            <line className={classes.grid} x1={left} x2={left} y1={MARGIN.top} y2={bottom} />
            <text x={left} y={bottom + 16} textAnchor="middle">
              {label}
            </text>
          </g>
        );
      })}
      <line className={classes.axis} x1={MARGIN.left} x2={right} y1={bottom} y2={bottom} />
      <text className={classes.axisTitle} x={(MARGIN.left + right) / 2} y={HEIGHT - 8} textAnchor="middle">
        {xTitle}
      </text>
      <text
        className={classes.axisTitle}
        transform={`translate(12 ${(MARGIN.top + bottom) / 2}) rotate(-90)`}
        textAnchor="middle"
      >
        {yTitle}
      </text>
    </>
  );
}

function Legend({ eliminated }: { eliminated: boolean }) {
  const mark = (text: string, content: ReactNode, standing?: string) => (
    <li data-standing={standing}>
      <svg width="18" height="10" aria-hidden="true">
        {content}
      </svg>
      {text}
    </li>
  );
  const dot = <circle className={classes.dot} cx="9" cy="5" r="3.5" />;
  return (
    <ul className={classes.legend}>
      {mark('score of a seed', dot)}
      {mark('interquartile mean', <line className={classes.mean} x1="0" x2="18" y1="5" y2="5" />)}
      {mark('highest interquartile mean', dot, 'best')}
      {eliminated && mark('eliminated configuration', dot, 'eliminated')}
    </ul>
  );
}
