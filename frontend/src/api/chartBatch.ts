import { api, unwrap } from './client';
import type { components, paths } from './generated';

type Chart = components['schemas']['Chart'];
type Query = NonNullable<paths['/api/v1/series']['get']['parameters']['query']>;

/** The service accepts at most 100 metrics; a page shows fewer panels. */
const MAX_METRICS = 50;

type Waiting = {
  query: Query;
  signal: AbortSignal;
  resolve: (chart: Chart) => void;
  reject: (reason: unknown) => void;
};

/** Requests of this moment, by everything but their metrics and revisions. */
const batches = new Map<string, Waiting[]>();

const revisions = ({ since_revision }: Query): number[] => since_revision ?? [];

const batchKey = (query: Query): string => {
  const { metric: _metric, since_revision: _since, ...rest } = query;
  // Charts that have data ask for updates only; new ones ask for everything.
  return JSON.stringify([rest, revisions(query).length]);
};

/** The query for all metrics of a batch, since the earliest revision that one of its charts has. */
function combined(batch: readonly Waiting[]): Query {
  const [first] = batch.map(({ query }) => query);
  if (!first) throw new Error('an empty batch');
  const metric = [...new Set(batch.flatMap(({ query }) => query.metric))];
  const since = revisions(first).map((_, run) =>
    Math.min(...batch.map(({ query }) => revisions(query)[run] ?? 0)),
  );
  return { ...first, metric, ...(since.length > 0 ? { since_revision: since } : {}) };
}

/** The part of a batch's chart that one request asked for, in the order of its metrics. */
export function partOf(chart: Chart, metrics: readonly string[]): Chart {
  const of = <T extends { metric: string }>(all: readonly T[]): T[] =>
    all.filter(({ metric }) => metrics.includes(metric));
  return { ...chart, series: of(chart.series), groups: of(chart.groups) };
}

async function send(batch: readonly Waiting[]): Promise<void> {
  const wanted = batch.filter(({ signal }) => !signal.aborted);
  for (const { signal, reject } of batch) if (signal.aborted) reject(signal.reason);
  if (wanted.length === 0) return;
  try {
    const chart = await unwrap(api.GET('/api/v1/series', { params: { query: combined(wanted) } }));
    for (const { query, resolve } of wanted) resolve(partOf(chart, query.metric));
  } catch (error) {
    for (const { reject } of wanted) reject(error);
  }
}

/** A chart's series; charts that ask at the same moment and differ in their metrics alone share one request. */
export function fetchChart(query: Query, signal: AbortSignal): Promise<Chart> {
  return new Promise((resolve, reject) => {
    const key = batchKey(query);
    const batch = batches.get(key);
    const waiting = { query, signal, resolve, reject };
    if (batch && batch.reduce((sum, each) => sum + each.query.metric.length, 0) < MAX_METRICS) {
      batch.push(waiting);
      return;
    }
    const started = [waiting];
    batches.set(key, started);
    // After the other charts of this render have asked.
    setTimeout(() => {
      if (batches.get(key) === started) batches.delete(key);
      void send(started);
    });
  });
}
