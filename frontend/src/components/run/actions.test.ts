import { describe, expect, it } from 'vitest';
import type { Run } from '@/api/runs';
import type { RunState } from '@/lib/states';
import { actionsFor } from './actions';

const run = (state: RunState, more: Partial<Run> = {}): Run =>
  ({
    state,
    archived: false,
    agent_steps: 1_234_567,
    stop_requested: null,
    spec: { config: { checkpoint_interval_s: 40 } },
    ...more,
  }) as unknown as Run;

const ids = (...args: Parameters<typeof run>): string[] => actionsFor(run(...args)).map(({ id }) => id);

describe('actionsFor', () => {
  it('stops or kills what runs', () => expect(ids('running')).toEqual(['stop', 'kill']));
  it('only kills what is stopping', () =>
    expect(ids('stopping', { stop_requested: 'stop' })).toEqual(['kill']));
  it('waits for what is being killed', () => expect(ids('stopping', { stop_requested: 'kill' })).toEqual([]));
  it('unqueues or deletes what waits', () => expect(ids('queued')).toEqual(['stop', 'delete']));
  it('resumes, archives or deletes what has ended', () =>
    expect(ids('stopped')).toEqual(['resume', 'archive', 'delete']));
  it('fetches back what is archived', () =>
    expect(ids('finished', { archived: true })).toEqual(['resume', 'unarchive', 'delete']));

  it('says how much a kill loses', () => {
    const kill = actionsFor(run('running')).find(({ id }) => id === 'kill');
    expect(kill?.label.replace('\u00a0', ' ')).toBe('Kill now (loses up to 40 s)');
  });

  it('says how much a deletion takes along', () => {
    const remove = actionsFor(run('failed')).find(({ id }) => id === 'delete');
    expect(remove?.says).toContain('1,234,567 agent steps');
  });
});
