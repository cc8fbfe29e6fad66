import type { AlertKind, Rule } from '@/api/alerts';
import { formatNumber } from '@/lib/format';

/** What rules can watch for, by what it is about. */
export const KINDS: readonly { about: string; kinds: readonly { kind: AlertKind; label: string }[] }[] = [
  {
    about: 'Runs',
    kinds: [
      { kind: 'finished', label: 'has finished' },
      { kind: 'failed', label: 'has failed' },
      { kind: 'lost', label: 'is lost' },
      { kind: 'no_points', label: 'has no new points for some minutes' },
      { kind: 'metric', label: 'has a metric above or below a value' },
      { kind: 'score', label: 'reaches a score' },
      { kind: 'nan', label: 'has a value that is not finite (NaN)' },
      { kind: 'script', label: 'sends an alert from its script' },
    ],
  },
  {
    about: 'Machines, sweeps and studies',
    kinds: [
      { kind: 'host_away', label: 'a machine is away' },
      { kind: 'disk_filling', label: 'the disk of a machine is filling' },
      { kind: 'sweep_done', label: 'a sweep is done' },
      { kind: 'study_done', label: 'a study is done' },
    ],
  },
];

const minutesOf = (minutes: number | null): string => `${formatNumber(minutes ?? 0)} min`;

/** What a rule watches for, such as `failed, loss/value above 5 for 10 min`. */
export function describeKinds(rule: Rule): string {
  const { metric, comparison, value, minutes, score } = rule;
  const words: Record<AlertKind, string> = {
    finished: 'finished',
    failed: 'failed',
    lost: 'lost',
    no_points: `no points for ${minutesOf(minutes)}`,
    metric: `${metric} ${comparison} ${formatNumber(value)}${minutes ? ` for ${minutesOf(minutes)}` : ''}`,
    score: `score ${formatNumber(score)} reached`,
    nan: 'not finite',
    script: 'alert of its script',
    host_away: 'machine away',
    disk_filling: 'disk filling',
    sweep_done: 'sweep done',
    study_done: 'study done',
  };
  return rule.kinds.map((kind) => words[kind as AlertKind]).join(', ');
}

/** What a rule is about. */
export function describeScope({ run_id, run_name, group, project }: Rule): string {
  if (run_id) return run_name ?? 'a deleted run';
  if (project !== null) return `project ${project}`;
  return group === null ? 'all' : `group ${group}`;
}
