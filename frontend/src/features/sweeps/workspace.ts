import type { SweepDetail } from '@/api/sweeps';
import { EPISODE_RETURN } from '@/api/series';
import type { Panel } from '@/components/run/panels';
import { variedSettings } from './configurations';

/** The address of the list selects up to this many runs by their ids. */
const MAX_IDS = 100;

/** A sweep's runs: by their group, or without one that a query can contain, by their ids. */
export function runsOfSweep({ spec, configurations }: SweepDetail): { q: string } | { runs: string } {
  const { group } = spec.run;
  if (typeof group === 'string' && !/["\\]/.test(group)) return { q: `group="${group}"` };
  const ids = configurations.flatMap(({ runs }) => runs.flatMap(({ run }) => run ?? []));
  return { runs: ids.slice(0, MAX_IDS).join(',') };
}

/** The address of the workspace of a sweep's runs: which settings matter, and how they score. */
export function workspaceOf(sweep: SweepDetail) {
  const hasPairs = variedSettings(sweep).length > 1;
  const panels: Panel[] = [
    { kind: 'importance', columns: 4, height_px: 260 },
    ...(hasPairs ? [{ kind: 'heatmap', columns: 4, height_px: 260 }] : []),
    { kind: 'bars', columns: hasPairs ? 4 : 8, height_px: 260 },
    { kind: 'parallel', columns: 12, height_px: 300 },
    { kind: 'lines', metrics: [EPISODE_RETURN] },
  ];
  return { list: 'beside' as const, group: 'seed' as const, ...runsOfSweep(sweep), panels };
}
