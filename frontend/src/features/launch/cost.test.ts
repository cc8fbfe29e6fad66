import { describe, expect, it } from 'vitest';
import type { Environment } from '@/api/catalogue';
import type { Run } from '@/api/runs';
import { readFields } from '@/lib/schema';
import { costOf, type StartingPoint } from './cost';
import { newDraft } from './draft';

const FIELDS = readFields(
  { properties: { agent_steps: { type: 'integer' }, wall_time_s: { type: 'number' } } },
  'stop',
);
const ENVIRONMENT = { frames_per_agent_step: 4 } as Environment;
const MEASURED = { agent_steps: 1000, wall_time_s: 10, spec: {} } as Run;

describe('costOf', () => {
  const cost = (raw: Record<string, string>, start?: StartingPoint) =>
    costOf(
      FIELDS,
      { ...newDraft({ algorithms: [], environments: [] }, {}), raw },
      ENVIRONMENT,
      [MEASURED],
      start,
    );

  it('counts a new run from zero', () => {
    expect(cost({ 'stop.agent_steps': '60,000' })).toMatchObject({
      agentSteps: 60_000,
      frames: 240_000,
      time_s: 600,
    });
  });

  it('counts a fork from its checkpoint', () => {
    const start = { agent_steps: 50_000, wall_time_s: 40 };
    expect(cost({ 'stop.agent_steps': '60,000' }, start)).toMatchObject({
      agentSteps: 10_000,
      frames: 40_000,
      time_s: 100,
    });
    expect(cost({ 'stop.agent_steps': '60,000', 'stop.wall_time_s': '100' }, start).time_s).toBe(60);
  });

  it('uses no rate of another network, but that of other numbers of processes', () => {
    const fields = [
      ...FIELDS,
      ...readFields(
        {
          properties: {
            network: { type: 'string', enum: ['nips', 'compact'], default: 'nips', group: 'network' },
            n_e: { type: 'integer', default: 32, group: 'parallelism' },
          },
        },
        'config',
      ),
    ];
    const measured = (network: string, n_e: number) =>
      ({ ...MEASURED, spec: { config: { network, n_e } } }) as Run;
    const draft = {
      ...newDraft({ algorithms: [], environments: [] }, {}),
      raw: { 'stop.agent_steps': '600' },
    };
    const by = (...runs: Run[]) => costOf(fields, draft, ENVIRONMENT, runs).measuredBy;
    const [other, similar, same] = [measured('compact', 32), measured('nips', 8), measured('nips', 32)];
    expect(by(other)).toBeNull();
    expect(by(other, similar)).toBe(similar);
    expect(by(other, similar, same)).toBe(same);
  });
});
