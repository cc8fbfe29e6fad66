import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { RunDetail } from '@/api/runs';
import { type Axes, type Chart, chartQuery, NO_SMOOTHING } from '@/api/series';
import { Problem } from '@/components/feedback';
import { DASH, formatBytes, formatCount, formatNumber, formatRate, plural } from '@/lib/format';
import classes from './gorila.module.css';

/** A metric's value by source, such as `actor 3`; the source '' is the whole run. */
type BySource = ReadonlyMap<string, number>;

/** The latest value of each source of a metric. */
export function latestBySource(chart: Chart | undefined, metric: string): BySource {
  const latest = new Map<string, number>();
  for (const curve of chart?.series ?? []) {
    const last = curve.metric === metric ? curve.last.at(-1) : undefined;
    if (typeof last === 'number') latest.set(curve.source, last);
  }
  return latest;
}

const numberOf = (source: string): number => Number(/\d+/.exec(source)?.[0] ?? 0);

/** The entries sorted by the number in their source: actor 9, actor 10. */
export const sortedBySource = (values: BySource): [string, number][] =>
  [...values].sort(([a], [b]) => numberOf(a) - numberOf(b));

/** The smallest and the largest value; undefined without any. */
export function rangeOf(bySource: BySource): [number, number] | undefined {
  const values = [...bySource.values()];
  return values.length > 0 ? [Math.min(...values), Math.max(...values)] : undefined;
}

const METRICS = [
  'speed/updates_per_s',
  'speed/agent_steps_per_s',
  'loss/td',
  'exploration/epsilon',
  'gorila/pushes_per_s',
  'gorila/pulls_per_s',
  'gorila/push_bytes_per_s',
  'gorila/pull_bytes_per_s',
  'gorila/gradient_staleness',
  'gorila/gradient_staleness_max',
  'gorila/gradient_staleness_share',
  'gorila/stale_discards',
  'gorila/outlier_discards',
  'gorila/lost_updates',
  'gorila/lost_chunks',
  'gorila/replay_detours',
  'gorila/replay_fill',
  'gorila/shard_updates',
  'gorila/version_seen',
  'gorila/episodes',
] as const;

const AXES: Axes = { x: 'agent_steps', smoothing: NO_SMOOTHING, zoom: null, points: 1 };

const percent = (fraction: number): string => `${Math.round(100 * fraction)}%`;

/** Gorila's architecture as in Figure 2 of its paper, with the latest values. */
export function GorilaFigure({ run }: { run: RunDetail }) {
  const { data, error, refetch } = useQuery(
    chartQuery({
      runs: [run.id],
      metrics: METRICS,
      source: ['*'],
      axes: AXES,
    }),
  );
  const problem = error && <Problem error={error} onRetry={() => void refetch()} />;
  if (error && !data) return problem;
  const latest = (metric: (typeof METRICS)[number]): BySource => latestBySource(data, metric);
  const total = (metric: (typeof METRICS)[number]): number | undefined => latest(metric).get('');
  const config = run.spec.config as Record<string, unknown>;
  const bundled = config.replay === 'bundled';
  const count = (field: 'n_actors' | 'n_learners' | 'n_shards', noun: string): string =>
    plural(Number(config[field]), noun);
  const fills = latest('gorila/replay_fill');

  return (
    <section className={`panel ${classes.figure}`} aria-label="Gorila architecture">
      {problem}
      <Box title={`Parameter server, ${count('n_shards', 'shard')}`} symbol="θ⁺">
        <Fact name="Updates per second">{formatRate(total('speed/updates_per_s'))}</Fact>
        <Fact name="Stale gradients discarded">{formatCount(total('gorila/stale_discards'))}</Fact>
        <Fact name="Updates lost with a shard">{formatCount(total('gorila/lost_updates'))}</Fact>
        <Strip name="Updates by shard" values={latest('gorila/shard_updates')} text={formatCount} />
      </Box>
      <div className={classes.between}>
        <Flow direction="up" name="gradients">
          {formatRate(total('gorila/pushes_per_s'))}/s, {formatBytes(total('gorila/push_bytes_per_s'))}/s
        </Flow>
        <Flow direction="down" name="changed θ⁺">
          {formatRate(total('gorila/pulls_per_s'))}/s, {formatBytes(total('gorila/pull_bytes_per_s'))}/s
        </Flow>
      </div>
      <div className={classes.work} data-bundled={bundled || undefined}>
        {bundled && (
          <p className={classes.caption}>
            {count('n_actors', 'bundle')} of one actor, learner and replay memory
          </p>
        )}
        <Box title={count('n_learners', 'learner')} symbol="Q(s, a; θ), Q(s, a; θ⁻)">
          <Fact name="Loss |y − Q|">{formatNumber(total('loss/td'))}</Fact>
          <Fact name="Outliers discarded">{formatCount(total('gorila/outlier_discards'))}</Fact>
          <Fact name="Staleness, mean and max">
            {formatNumber(total('gorila/gradient_staleness'))},{' '}
            {formatCount(total('gorila/gradient_staleness_max'))}
          </Fact>
          <Strip
            name="Gradients by staleness"
            values={latest('gorila/gradient_staleness_share')}
            text={percent}
            labelled
          />
        </Box>
        <Flow direction="left" name="minibatches">
          of {String(config.batch_size)}
          {config.replay === 'local' &&
            `, ${formatCount(total('gorila/replay_detours'))} from others' shards`}
        </Flow>
        <Box title={bundled ? 'Replay memories' : plural(fills.size, 'replay shard')} symbol="D">
          {!bundled && <Fact name="Chunks lost">{formatCount(total('gorila/lost_chunks'))}</Fact>}
          <Strip name="Filled" values={fills} text={percent} max={1} />
        </Box>
        <Flow direction="left" name="(s, a, r, s′)">
          {formatRate(total('speed/agent_steps_per_s'))}/s
        </Flow>
        <Box title={count('n_actors', 'actor')} symbol="argmax Q(s, a; θ)">
          <Fact name="Exploration ε">{formatNumber(total('exploration/epsilon'))}</Fact>
          <Strip name="θ version by actor" values={latest('gorila/version_seen')} text={formatCount} />
          <Strip name="Episodes by actor" values={latest('gorila/episodes')} text={formatCount} />
        </Box>
      </div>
    </section>
  );
}

function Box({ title, symbol, children }: { title: string; symbol: string; children: ReactNode }) {
  return (
    <section className={classes.box} aria-label={title}>
      <header>
        <span className="section-title">{title}</span> <span className="num muted nowrap">{symbol}</span>
      </header>
      <dl>{children}</dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={classes.fact}>
      <dt className="muted">{name}</dt>
      <dd className="num">{children}</dd>
    </div>
  );
}

function Flow({
  direction,
  name,
  children,
}: {
  direction: 'up' | 'down' | 'left';
  name: string;
  children: ReactNode;
}) {
  return (
    <p className={classes.flow} data-direction={direction}>
      <svg viewBox="0 0 48 10" aria-hidden="true">
        <path d="M47 5H2M8 1L2 5l6 4" />
      </svg>
      <span>{name}</span>
      <span className="num muted">{children}</span>
    </p>
  );
}

type StripProps = {
  name: string;
  values: BySource;
  text: (value: number) => string;
  /** The value of a full bar; by default the largest one. */
  max?: number;
  /** Show each source's name under its bar, for a few sources. */
  labelled?: boolean;
};

/** One bar per source. */
function Strip({ name, values, text, max, labelled }: StripProps) {
  const range = rangeOf(values);
  const [low, high] = range ? [text(range[0]), text(range[1])] : [DASH, DASH];
  const full = max ?? (range ? range[1] : 1);
  return (
    <div className={classes.strip}>
      <dt className="muted">{name}</dt>
      <dd className="num">{labelled ? `up to ${high}` : low === high ? high : `${low} to ${high}`}</dd>
      <dd className={classes.bars} aria-hidden={!labelled}>
        {sortedBySource(values).map(([source, value]) => (
          <span key={source} title={`${source}: ${text(value)}`}>
            <span style={{ height: `${full > 0 ? (100 * value) / full : 0}%` }} />
            {labelled && <small className="num">{source}</small>}
          </span>
        ))}
      </dd>
    </div>
  );
}
