import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import { api, take } from '@/api/client';
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
      const query = { run: [...runs], metric: [METRIC], points: POINTS, smooth: SMOOTH };
      const { series } = await take(api.GET('/api/v1/series', { params: { query }, signal }));
      return new Map(
        series.map(({ run, smoothed }) => [run, (smoothed ?? []).filter((value) => value !== null)]),
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

/** Small learning curves of the rows in view, all in one request; they need not be of this second. */
export const useSparklines = (runs: readonly string[]): Lines => useQuery(sparklinesQuery(runs)).data ?? NONE;

/** The values as an SVG path in a box. */
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
