import type { RunDetail } from '@/api/runs';
import { formatValue } from '@/lib/format';

export type Attempt = RunDetail['attempts'][number];

export type ProvenanceRow = {
  title: string;
  hint?: string;
  /** The value of each attempt, in their order; undefined where it is unknown. */
  values: (string | undefined)[];
};

const COMMIT_LENGTH = 12;

function commitText({ commit, dirty }: { commit: string | null; dirty: boolean | null }): string {
  if (commit === null) return 'not from a checkout';
  return commit.slice(0, COMMIT_LENGTH) + (dirty ? ', with uncommitted changes' : '');
}

/** What attempts were trained with: a row for each fact that is known of one of them. */
export function provenanceRows(attempts: readonly Attempt[]): ProvenanceRow[] {
  type Known = NonNullable<Attempt['provenance']>;
  const row = (title: string, of: (known: Known) => unknown, hint?: string): ProvenanceRow => ({
    title,
    ...(hint ? { hint } : {}),
    values: attempts.map(({ provenance }) => {
      const value = provenance ? of(provenance) : null;
      return value === null || value === undefined ? undefined : formatValue(value);
    }),
  });
  const packages = new Set(attempts.flatMap(({ provenance }) => Object.keys(provenance?.packages ?? {})));
  return [
    row('Callboard', ({ version }) => version),
    row('Commit', commitText),
    row('Processor', ({ processor }) => processor),
    row('Cores', ({ cpu_count }) => cpu_count, 'Cores that the engine may use'),
    row('GPUs', ({ gpus }) => gpus.join(', ') || null),
    row('Device', ({ device }) => device),
    row(
      'Rollout workers',
      ({ rollout_workers }) => rollout_workers,
      'At most one per core: with a different number, the same seed gives different series',
    ),
    ...[...packages].map((name) => row(name, (known) => known.packages[name])),
    row('Command', ({ command }) => command.join(' ')),
  ].filter(({ values }) => values.some((value) => value !== undefined));
}

export type Process = RunDetail['processes'][number];

/** What is known of a script's process, in a few words each. */
export function processFacts({ host, command, python, commit, dirty, variables }: Process) {
  const facts = [
    ['Host', host],
    ['Command', command.join(' ')],
    ['Python', python],
    ['Commit', host && commitText({ commit, dirty })],
    ...Object.entries(variables),
  ];
  return facts.flatMap(([title = '', value]) => (value ? [{ title, value }] : []));
}

/** Whether a value differs from that of the attempt before. */
export const differs = (values: ProvenanceRow['values'], k: number): boolean =>
  k > 0 && values[k] !== undefined && values[k - 1] !== undefined && values[k] !== values[k - 1];
