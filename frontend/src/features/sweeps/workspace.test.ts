import { expect, it } from 'vitest';
import { panelsOf } from '@/components/run/panels';
import { compareSearch } from '@/components/run/search';
import type { SweepDetail } from '@/api/sweeps';
import { workspaceOf } from './workspace';

const sweep = (space: Record<string, unknown>, group: string | null): SweepDetail =>
  ({
    spec: { space, run: { group } },
    configurations: [{ runs: [{ run: '0'.repeat(26) }, { run: null }] }],
  }) as unknown as SweepDetail;

it('the workspace of a sweep shows its group by config, a heat map where two settings vary', () => {
  const search = workspaceOf(sweep({ 'config.lr': [1], 'config.n_e': [2] }, 'rates'));
  expect(search).toMatchObject({ q: 'group="rates"', group: 'seed', list: 'beside' });
  expect(search.panels.map(({ kind }) => kind)).toEqual([
    'importance',
    'heatmap',
    'bars',
    'parallel',
    'lines',
  ]);
  expect(panelsOf(compareSearch(search))).toEqual(search.panels);
});

it('names the runs of a sweep whose group no query can contain', () => {
  const search = workspaceOf(sweep({ 'config.lr': [1] }, 'a "b"'));
  expect(search).toMatchObject({ runs: '0'.repeat(26) });
  expect(search.panels.map(({ kind }) => kind)).not.toContain('heatmap');
});
