import { api, unwrap } from './client';
import type { paths } from './generated';
import type { Answer } from './tails';

type Query = NonNullable<paths['/api/v1/figures']['get']['parameters']['query']>;

/** The service accepts at most 100 figures; a page shows fewer panels. */
const MAX_FIGURES = 50;

type Waiting = {
  query: Query;
  signal: AbortSignal;
  resolve: (answer: Answer) => void;
  reject: (reason: unknown) => void;
};

/** The requests that are about to be sent together, by `batchKey`. */
const batches = new Map<string, Waiting[]>();

const revisions = ({ since_revision }: Query): number[] => since_revision ?? [];

const batchKey = (query: Query): string => {
  const { figure: _figure, since_revision: _since, layout: _layout, ...rest } = query;
  // Charts that have data ask for updates only; new ones ask for everything.
  return JSON.stringify([rest, revisions(query).length]);
};

/** The query for all figures of a batch, since the earliest revision that one of them has. */
function combined(batch: readonly Waiting[]): Query {
  const [first] = batch.map(({ query }) => query);
  if (!first) throw new Error('an empty batch');
  const figure = [...new Set(batch.flatMap(({ query }) => query.figure))];
  const since = revisions(first).map((_, run) =>
    Math.min(...batch.map(({ query }) => revisions(query)[run] ?? 0)),
  );
  if (since.length === 0) return { ...first, figure };
  const layout = batch.some(({ query }) => query.layout);
  return { ...first, figure, since_revision: since, layout };
}

async function send(batch: readonly Waiting[]): Promise<void> {
  const wanted = batch.filter(({ signal }) => !signal.aborted);
  for (const { signal, reject } of batch) if (signal.aborted) reject(signal.reason);
  if (wanted.length === 0) return;
  try {
    const query = combined(wanted);
    // OpenAPI types plotly's data and layout as plain objects.
    const { items } = (await unwrap<unknown>(api.GET('/api/v1/figures', { params: { query } }))) as {
      items: readonly Answer[];
    };
    for (const request of wanted) {
      const answer = items[query.figure.indexOf(request.query.figure[0] ?? '')];
      if (answer) request.resolve(answer);
      else request.reject(new Error('the answer lacks a figure'));
    }
  } catch (error) {
    for (const { reject } of wanted) reject(error);
  }
}

/** What a chart lacks of its figure; charts of the same runs and axes that ask at one moment share a request. */
export function fetchFigure(query: Query, signal: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const key = batchKey(query);
    const batch = batches.get(key);
    const waiting = { query, signal, resolve, reject };
    if (batch && batch.reduce((sum, request) => sum + request.query.figure.length, 0) < MAX_FIGURES) {
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
