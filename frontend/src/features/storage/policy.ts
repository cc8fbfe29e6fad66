/** The fields of retention settings, what is typed into them, and a policy in words. */
import type { Policy } from '@/api/storage';
import { formatInteger, parseNumber, plural } from '@/lib/format';

type NumberName = Exclude<keyof Policy, 'event_logs'>;

export type NumberField = { name: NumberName; title: string; unit: string; hint: string };

/** What is typed; an empty text is a setting that is not set. */
export type Draft = Record<keyof Policy, string>;

export const CHECKPOINTS: readonly NumberField[] = [
  {
    name: 'checkpoints_best',
    title: 'Best checkpoints',
    unit: 'checkpoints',
    hint: 'Checkpoints with the highest scores; evaluated checkpoints take precedence.',
  },
  {
    name: 'checkpoints_last',
    title: 'Latest checkpoints',
    unit: 'checkpoints',
    hint: 'The latest one is always kept.',
  },
  {
    name: 'checkpoints_every_agent_steps',
    title: 'Checkpoint spacing',
    unit: 'agent steps',
    hint: 'The first checkpoint at or after each multiple of this number.',
  },
];

export const EPISODES: readonly NumberField[] = [
  {
    name: 'episodes_best',
    title: 'Best episodes',
    unit: 'episodes',
    hint: 'This many training episodes and this many evaluation episodes, with the highest returns.',
  },
  {
    name: 'episodes_last',
    title: 'Latest episodes',
    unit: 'episodes',
    hint: 'This many training episodes and this many evaluation episodes.',
  },
  {
    name: 'videos_days',
    title: 'Videos',
    unit: 'days',
    hint: 'Removed this many days after being rendered or received. Videos of episodes can be rendered again; videos sent by external runs cannot.',
  },
];

export const EVENT_LOGS_AFTER: NumberField = {
  name: 'event_logs_days',
  title: 'Event logs after',
  unit: 'days',
  hint: 'After the end of the attempt; 0: immediately.',
};

export const LOG_LINES: NumberField = {
  name: 'log_lines_days',
  title: 'Log lines',
  unit: 'days',
  hint: 'Lines of a run’s log are removed after this many days.',
};

export const AUDIT: NumberField = {
  name: 'audit_days',
  title: 'Audit trail',
  unit: 'days',
  hint: 'Its entries are removed after this many days.',
};

const NUMBERS = [...CHECKPOINTS, ...EPISODES, EVENT_LOGS_AFTER, LOG_LINES, AUDIT];

/** A policy as it would be typed. */
export function toDraft(policy: Policy): Draft {
  const numbers = NUMBERS.map(({ name }) => [name, formatTyped(policy[name])] as const);
  return { ...(Object.fromEntries(numbers) as Record<NumberName, string>), event_logs: policy.event_logs };
}

const formatTyped = (value: number | null | undefined): string => (value == null ? '' : formatInteger(value));

/** The typed policy, and what is wrong with its fields; their bounds are checked by the service. */
export function parseDraft(draft: Draft): { policy: Policy; errors: Map<string, string> } {
  const errors = new Map<string, string>();
  const numbers = NUMBERS.map(({ name }) => {
    const value = draft[name].trim() === '' ? null : parseNumber(draft[name]);
    if (value !== null && !Number.isSafeInteger(value)) errors.set(name, 'Enter a whole number.');
    if (value === null && name === 'event_logs_days') errors.set(name, 'Enter a number of days.');
    return [name, value] as const;
  });
  const policy = { ...Object.fromEntries(numbers), event_logs: draft.event_logs } as Policy;
  return { policy, errors };
}

const days = (count: number): string => plural(count, 'day');

/** What a policy keeps of each kind of data that it limits, and what becomes of event logs. */
export function describePolicy(policy: Policy): string[] {
  const { checkpoints_every_agent_steps: every, event_logs: logs, event_logs_days: after } = policy;
  const checkpoints = [
    policy.checkpoints_best != null && `best ${formatInteger(policy.checkpoints_best)}`,
    policy.checkpoints_last != null && `latest ${formatInteger(policy.checkpoints_last)}`,
    every != null && `one every ${formatInteger(every)} agent steps`,
  ].filter(Boolean);
  const episodes = [
    policy.episodes_best != null && `best ${formatInteger(policy.episodes_best)}`,
    policy.episodes_last != null && `latest ${formatInteger(policy.episodes_last)}`,
  ].filter(Boolean);
  return [
    checkpoints.length > 0 && `Checkpoints: ${checkpoints.join(', ')}`,
    episodes.length > 0 && `Episodes: ${episodes.join(', ')}`,
    policy.videos_days != null && `Videos: kept for ${days(policy.videos_days)}`,
    `Event logs: ${logs === 'keep' ? 'kept' : `${logs === 'remove' ? 'removed' : 'compressed'} after ${days(after)}`}`,
    policy.log_lines_days != null && `Log lines: kept for ${days(policy.log_lines_days)}`,
  ].filter((part) => part !== false);
}
