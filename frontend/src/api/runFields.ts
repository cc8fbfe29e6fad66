import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type RunField = components['schemas']['FieldOut'];
export type MetricSummary = components['schemas']['MetricSummary'];

export const STATISTICS = ['last', 'best', 'mean', 'min', 'max'] as const;
export type Statistic = (typeof STATISTICS)[number];

const FRESH_MS = 15_000;

/** The fields by which runs can be filtered, sorted and shown: their own, settings, and recorded metrics. */
export const runFieldsQuery = queryOptions({
  queryKey: keys.runFields(),
  queryFn: async ({ signal }) => (await unwrap(api.GET('/api/v1/runs/fields', { signal }))).items,
  staleTime: 60_000,
});

/** Statistics of metrics by run and metric, refreshed at intervals. */
export const runMetricsQuery = (runs: readonly string[], metrics: readonly string[]) =>
  queryOptions({
    queryKey: keys.runMetrics(runs, metrics),
    queryFn: async ({ signal }): Promise<ReadonlyMap<string, ReadonlyMap<string, MetricSummary>>> => {
      const query = { run: [...runs], metric: [...metrics] };
      const { items } = await unwrap(api.GET('/api/v1/runs/metrics', { params: { query }, signal }));
      const byRun = new Map<string, Map<string, MetricSummary>>();
      for (const item of items) {
        const ofRun = byRun.get(item.run) ?? new Map<string, MetricSummary>();
        byRun.set(item.run, ofRun.set(item.metric, item));
      }
      return byRun;
    },
    staleTime: FRESH_MS,
    gcTime: FRESH_MS,
    refetchInterval: FRESH_MS,
    placeholderData: keepPreviousData,
    structuralSharing: false,
    enabled: runs.length > 0 && metrics.length > 0,
  });
