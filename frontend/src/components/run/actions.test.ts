import { describe, expect, it } from 'vitest';
import type { Run } from '@/api/runs';
import type { RunState } from '@/lib/run';
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

describe('actionsFor', () => {
  it.each<[string, Run, string[]]>([
    ['a running run', run('running'), ['stop', 'kill']],
    ['a run that is stopping', run('stopping', { stop_requested: 'stop' }), ['kill']],
    ['a run that is being killed', run('stopping', { stop_requested: 'kill' }), []],
    ['a queued run', run('queued'), ['stop', 'delete']],
    ['an ended run', run('stopped'), ['resume', 'archive', 'delete']],
    ['an archived run', run('finished', { archived: true }), ['resume', 'unarchive', 'delete']],
  ])('offers %s its actions', (_, subject, ids) =>
    expect(actionsFor(subject).map(({ id }) => id)).toEqual(ids),
  );

  it.each<[string, RunState, [string, boolean][]]>([
    [
      'running',
      'running',
      [
        ['stop', true],
        ['kill', false],
      ],
    ],
    ['stopping', 'stopping', [['kill', false]]],
    [
      'lost',
      'lost',
      [
        ['stop', true],
        ['delete', true],
      ],
    ],
    [
      'ended',
      'failed',
      [
        ['resume', false],
        ['archive', true],
        ['delete', true],
      ],
    ],
  ])('names why actions are unavailable for an external run that is %s', (_, state, expected) => {
    const actions = actionsFor(run(state, { origin: 'external' }));
    expect(actions.map(({ id, unavailable }) => [id, unavailable === undefined])).toEqual(expected);
    for (const { unavailable } of actions)
      if (unavailable) expect(unavailable).toContain('trained elsewhere');
  });

  it('labels a kill with the time it may lose', () => {
    const kill = actionsFor(run('running')).find(({ id }) => id === 'kill');
    expect(kill?.label.replace('\u00a0', ' ')).toBe('Kill now (loses up to 40 s)');
  });

  it('describes a deletion with the agent steps it discards', () => {
    const remove = actionsFor(run('failed')).find(({ id }) => id === 'delete');
    expect(remove?.description).toContain('1,234,567 agent steps');
  });
});
