import { expect, it } from 'vitest';
import type { Environment } from '@/api/catalog';
import type { Run } from '@/api/runs';
import { readSettings } from '@/lib/schema';
import { costOf } from './cost';
import { newDraft } from './draft';

const SETTINGS = readSettings(
  { properties: { agent_steps: { type: 'integer' }, wall_time_s: { type: 'number' } } },
  'stop',
);
const WORLD = { frames_per_agent_step: 4 } as Environment;
const MEASURED = { agent_steps: 1000, wall_time_s: 10, spec: {} } as Run;

const cost = (raw: Record<string, string>, begun?: { agent_steps: number; wall_time_s: number }) =>
  costOf(SETTINGS, { ...newDraft({ algorithms: [], environments: [] }, {}), raw }, WORLD, [MEASURED], begun);

it('counts a new run from nothing', () => {
  expect(cost({ 'stop.agent_steps': '60,000' })).toMatchObject({
    agentSteps: 60_000,
    frames: 240_000,
    time_s: 600,
  });
});

it('counts a fork from its checkpoint', () => {
  const begun = { agent_steps: 50_000, wall_time_s: 40 };
  expect(cost({ 'stop.agent_steps': '60,000' }, begun)).toMatchObject({
    agentSteps: 10_000,
    frames: 40_000,
    time_s: 100,
  });
  expect(cost({ 'stop.agent_steps': '60,000', 'stop.wall_time_s': '100' }, begun).time_s).toBe(60);
});
