import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { RunDetail } from '@/api/runs';
import { chartQuery } from '@/api/series';
import { Problem } from '@/components/feedback';
import { DASH, formatBytes, formatCount, formatNumber, plural } from '@/lib/format';
import classes from './gorila.module.css';
import { inOrder, newest, rangeOf, type Parts } from './newest';

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

const percent = (share: number): string => `${Math.round(100 * share)}%`;

/** Gorila as Figure 2 of its paper draws it, with the newest numbers on it. */
export function GorilaFigure({ run }: { run: RunDetail }) {
  const client = useQueryClient();
  const { data, error, refetch } = useQuery(
    chartQuery(client, {
      runs: [run.id],
      metrics: METRICS,
      source: ['*'],
      x: 'agent_steps',
      smooth: 0,
      points: 1,
    }),
  );
  if (error) return <Problem error={error} onRetry={() => void refetch()} />;
  const of = (metric: (typeof METRICS)[number]): Parts => newest(data, metric);
  const now = (metric: (typeof METRICS)[number]): number | undefined => of(metric).get('');
  const config = run.spec.config as Record<string, unknown>;
  const bundled = config.replay === 'bundled';
  const several = (setting: 'n_actors' | 'n_learners' | 'n_shards', one: string): string =>
    plural(Number(config[setting]), one);
  const fills = of('gorila/replay_fill');

  return (
    <section className={`panel ${classes.figure}`} aria-label="Gorila's parts">
      <Box title={`Parameter server, ${several('n_shards', 'shard')}`} symbol="θ⁺">
        <Fact name="Updates a second">{formatCount(now('speed/updates_per_s'))}</Fact>
        <Fact name="Stale gradients discarded">{formatCount(now('gorila/stale_discards'))}</Fact>
        <Fact name="Updates lost with a shard">{formatCount(now('gorila/lost_updates'))}</Fact>
        <Strip name="Updates of each shard" parts={of('gorila/shard_updates')} text={formatCount} />
      </Box>
      <div className={classes.between}>
        <Flow way="up" name="gradients">
          {formatCount(now('gorila/pushes_per_s'))}/s, {formatBytes(now('gorila/push_bytes_per_s'))}/s
        </Flow>
        <Flow way="down" name="θ⁺ where it has changed">
          {formatCount(now('gorila/pulls_per_s'))}/s, {formatBytes(now('gorila/pull_bytes_per_s'))}/s
        </Flow>
      </div>
      <div className={classes.work} data-bundled={bundled || undefined}>
        {bundled && <p className={classes.caption}>{several('n_actors', 'bundle')} of one each</p>}
        <Box title={several('n_learners', 'learner')} symbol="Q(s, a; θ), Q(s, a; θ⁻)">
          <Fact name="Loss |y − Q|">{formatNumber(now('loss/td'))}</Fact>
          <Fact name="Outliers discarded">{formatCount(now('gorila/outlier_discards'))}</Fact>
          <Fact name="Staleness, mean and greatest">
            {formatNumber(now('gorila/gradient_staleness'))},{' '}
            {formatCount(now('gorila/gradient_staleness_max'))}
          </Fact>
          <Strip
            name="Gradients by updates late"
            parts={of('gorila/gradient_staleness_share')}
            text={percent}
            labelled
          />
        </Box>
        <Flow way="left" name="minibatches">
          of {String(config.batch_size)}
          {config.replay === 'local' && `, ${formatCount(now('gorila/replay_detours'))} from others' shards`}
        </Flow>
        <Box title={bundled ? 'Replay memories' : plural(fills.size, 'replay shard')} symbol="D">
          {!bundled && <Fact name="Chunks lost">{formatCount(now('gorila/lost_chunks'))}</Fact>}
          <Strip name="Filled" parts={fills} text={percent} most={1} />
        </Box>
        <Flow way="left" name="(s, a, r, s′)">
          {formatCount(now('speed/agent_steps_per_s'))}/s
        </Flow>
        <Box title={several('n_actors', 'actor')} symbol="argmax Q(s, a; θ)">
          <Fact name="Random actions, ε">{formatNumber(now('exploration/epsilon'))}</Fact>
          <Strip name="Updates in each one's θ" parts={of('gorila/version_seen')} text={formatCount} />
          <Strip name="Episodes of each" parts={of('gorila/episodes')} text={formatCount} />
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

function Flow({ way, name, children }: { way: 'up' | 'down' | 'left'; name: string; children: ReactNode }) {
  return (
    <p className={classes.flow} data-way={way}>
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
  parts: Parts;
  text: (value: number) => string;
  /** What a full bar stands for; by default the greatest of them. */
  most?: number;
  /** With each part's name under it: only for few. */
  labelled?: boolean;
};

/** A bar for each part of a run. */
function Strip({ name, parts, text, most, labelled }: StripProps) {
  const range = rangeOf(parts);
  const [low, high] = range ? [text(range[0]), text(range[1])] : [DASH, DASH];
  const full = most ?? (range ? range[1] : 1);
  return (
    <div className={classes.strip}>
      <dt className="muted">{name}</dt>
      <dd className="num">{labelled ? `up to ${high}` : low === high ? high : `${low} to ${high}`}</dd>
      <dd className={classes.bars} aria-hidden={!labelled}>
        {inOrder(parts).map(([source, value]) => (
          <span key={source} title={`${source}: ${text(value)}`}>
            <span style={{ height: `${full > 0 ? (100 * value) / full : 0}%` }} />
            {labelled && <small className="num">{source}</small>}
          </span>
        ))}
      </dd>
    </div>
  );
}
