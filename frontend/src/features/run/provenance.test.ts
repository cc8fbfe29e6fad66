import { describe, expect, it } from 'vitest';
import { differs, provenanceRows, type Attempt } from './provenance';

const provenance: NonNullable<Attempt['provenance']> = {
  version: '0.2.0',
  commit: '0123456789abcdef0123',
  dirty: false,
  packages: { python: '3.11.9', torch: '2.9.0' },
  command: ['python', '-m', 'workers.engine'],
  processor: 'A processor',
  cpu_count: 2,
  gpus: [],
  device: 'cpu',
  rollout_workers: 2,
};
const attempt = (number: number, its: Attempt['provenance']): Attempt => ({
  number,
  host: 'a',
  claimed_at: '2026-01-01T00:00:00Z',
  ended_at: null,
  outcome: null,
  resumed_from_agent_steps: 0,
  provenance: its,
});
const values = (attempts: Attempt[]) =>
  Object.fromEntries(provenanceRows(attempts).map((row) => [row.title, row.values]));

describe('provenanceRows', () => {
  it('lists what is known, a value per attempt', () => {
    const newer = { ...provenance, dirty: true, packages: { ...provenance.packages, torch: '2.10.0' } };
    const found = values([attempt(1, null), attempt(2, provenance), attempt(3, newer)]);
    expect(found.Callboard).toEqual([undefined, '0.2.0', '0.2.0']);
    expect(found.Commit).toEqual([undefined, '0123456789ab', '0123456789ab, with uncommitted changes']);
    expect(found.torch).toEqual([undefined, '2.9.0', '2.10.0']);
    expect(found['Rollout workers']).toEqual([undefined, '2', '2']);
    expect(found.Command?.[1]).toBe('python -m workers.engine');
    expect(found).not.toHaveProperty('GPUs');
  });

  it('lists nothing if nothing is known', () => expect(provenanceRows([attempt(1, null)])).toEqual([]));

  it('shows that no commit is known', () =>
    expect(values([attempt(1, { ...provenance, commit: null, dirty: null })]).Commit).toEqual([
      'not from a checkout',
    ]));
});

it('marks values that differ from the attempt before', () => {
  const seen = [undefined, 'a', 'a', 'b'];
  expect(seen.map((_, k) => differs(seen, k))).toEqual([false, false, false, true]);
});
