import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/api/client';
import { keys } from '@/api/keys';

const METRIC = 'rollout/episode_return';
const POINTS = 64;
const SMOOTH = 0.9;
const FRESH_MS = 15_000;

type Lines = ReadonlyMap<string, readonly number[]>;

const sparklinesQuery = (runs: readonly string[]) =>
  queryOptions({
    queryKey: keys.sparklines(runs),
    queryFn: async ({ signal }): Promise<Lines> => {
      const query = { run: [...runs], metric: [METRIC], points: POINTS, smooth: SMOOTH, scored: true };
      const { series } = await unwrap(api.GET('/api/v1/series', { params: { query }, signal }));
      return new Map(
        series.map(({ run, smoothed }) => [
          run,
          (smoothed ?? []).filter((value) => typeof value === 'number'),
        ]),
      );
    },
    staleTime: FRESH_MS,
    gcTime: FRESH_MS,
    refetchInterval: FRESH_MS,
    placeholderData: keepPreviousData,
    structuralSharing: false,
    enabled: runs.length > 0,
  });

const NONE: Lines = new Map();

/** The sparklines of the rows in view, fetched in one request and refreshed at intervals. */
export const useSparklines = (runs: readonly string[]): Lines => useQuery(sparklinesQuery(runs)).data ?? NONE;

/** An SVG path of the values, scaled to a box. */
export function sparkPath(values: readonly number[], width: number, height: number): string {
  if (values.length < 2) return '';
  const low = Math.min(...values);
  const span = Math.max(...values) - low || 1;
  return values
    .map((value, index) => {
      const x = (index / (values.length - 1)) * width;
      const y = height - ((value - low) / span) * height;
      return `${index === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`;
    })
    .join('');
}
