import { describe, expect, it } from 'vitest';
import { differs, processFacts, provenanceRows, type Attempt } from './provenance';

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
const attempt = (number: number, known: Attempt['provenance']): Attempt => ({
  number,
  host: 'a',
  claimed_at: '2026-01-01T00:00:00Z',
  ended_at: null,
  outcome: null,
  resumed_from_agent_steps: 0,
  provenance: known,
});
const values = (attempts: Attempt[]) =>
  Object.fromEntries(provenanceRows(attempts).map((row) => [row.title, row.values]));

describe('provenanceRows', () => {
  it('lists what is known, a value per attempt', () => {
    const newer = { ...provenance, dirty: true, packages: { ...provenance.packages, torch: '2.10.0' } };
    const rows = values([attempt(1, null), attempt(2, provenance), attempt(3, newer)]);
    expect(rows.Callboard).toEqual([undefined, '0.2.0', '0.2.0']);
    expect(rows.Commit).toEqual([undefined, '0123456789ab', '0123456789ab, with uncommitted changes']);
    expect(rows.torch).toEqual([undefined, '2.9.0', '2.10.0']);
    expect(rows['Rollout workers']).toEqual([undefined, '2', '2']);
    expect(rows.Command?.[1]).toBe('python -m workers.engine');
    expect(rows).not.toHaveProperty('GPUs');
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

it('names what is known of the process of a script', () => {
  const process = {
    source: '01JD3QZ6W9K0Y5T8H2V4B7N1XC',
    host: 'lab-3',
    command: ['python', 'train.py', '--token=***'],
    python: '3.11.9',
    commit: null,
    dirty: null,
    variables: { RANK: '3' },
  };
  expect(processFacts(process).map(({ title, value }) => `${title}: ${value}`)).toEqual([
    'Host: lab-3',
    'Command: python train.py --token=***',
    'Python: 3.11.9',
    'Commit: not from a checkout',
    'RANK: 3',
  ]);
  const unknown = { ...process, host: '', command: [], python: '', variables: {} };
  expect(processFacts(unknown)).toEqual([]);
});
