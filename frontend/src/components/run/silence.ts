import { useQuery } from '@tanstack/react-query';
import { runQuery, type Run } from '@/api/runs';
import { runsHere } from '@/lib/run';

/** How often a script sends something, at least. */
export const HEARTBEAT_S = 15;

/** Seconds since the script of a running external run has sent anything; null before it misses a heartbeat. */
export function useSilence(run: Run): number | null {
  const enabled = !runsHere(run) && run.state === 'running';
  // That nothing has come is no event.
  const { data } = useQuery({ ...runQuery(run.id), enabled, refetchInterval: 1000 * HEARTBEAT_S });
  const silence_s = data?.silent_s ?? null;
  return enabled && silence_s !== null && silence_s >= 2 * HEARTBEAT_S ? silence_s : null;
}
