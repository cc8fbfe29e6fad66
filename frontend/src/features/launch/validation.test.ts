import { describe, expect, it } from 'vitest';
import { readFields } from '@/lib/schema';
import { newDraft, type Draft } from './draft';
import { errorSummary, validate } from './validation';

const draft = (change: Partial<Draft>): Draft => ({
  ...newDraft({ algorithms: [], environments: [] }, {}),
  ...change,
});

describe('validate', () => {
  it.each([
    [{ tags: `short, ${'x'.repeat(51)}` }, 'tags', 'A tag may have at most 50 characters; one has 51.'],
    [{ tags: 'a "word"' }, 'tags', 'Tags must not contain quotes or backslashes.'],
    [
      { tags: Array.from({ length: 51 }, (_, n) => `t${n}`).join() },
      'tags',
      'At most 50 tags are allowed; these are 51.',
    ],
    [{ name: 'x'.repeat(201) }, 'name', 'At most 200 characters are allowed; this has 201.'],
    [{ notes: 'x'.repeat(20_001) }, 'notes', 'At most 20,000 characters are allowed; this has 20,001.'],
    [{ firstSeed: 'abc' }, 'seed', 'Enter a whole number from 0 to 2,147,483,647.'],
  ])('rejects what exceeds a limit of the service', (change, field, message) => {
    expect(validate([], draft(change))).toContainEqual({ field, message });
  });

  it('accepts text at its limit, counted in characters rather than UTF-16 units', () => {
    const paths = validate([], draft({ tags: 'x'.repeat(50), name: '😀'.repeat(200) })).map(
      ({ field }) => field,
    );
    expect(paths).not.toContain('tags');
    expect(paths).not.toContain('name');
  });
});

describe('validate of the stopping fields', () => {
  const fields = [
    ...readFields(
      { properties: { agent_steps: { type: 'integer' }, wall_time_s: { type: 'number' } } },
      'stop',
    ),
    ...readFields(
      { properties: { learning_rate_schedule: { enum: ['linear', 'constant'], default: 'linear' } } },
      'config',
    ),
  ].map((field) => ({ ...field, optional: field.section === 'stop' }));
  const errors = (raw: Draft['raw']): string[] => validate(fields, draft({ raw })).map(({ field }) => field);

  it('requires an agent-step limit for a linear learning rate', () => {
    expect(errors({ 'stop.wall_time_s': '60' })).toEqual(['stop.agent_steps']);
    expect(errors({ 'stop.agent_steps': '1000' })).toEqual([]);
    expect(errors({ 'stop.wall_time_s': '60', 'config.learning_rate_schedule': 'constant' })).toEqual([]);
  });

  it('refuses several values in a fork', () => {
    const raw = { 'stop.agent_steps': '1000, 2000' };
    expect(validate(fields, draft({ raw }))).toEqual([]);
    expect(validate(fields, draft({ raw }), true)).toHaveLength(1);
  });
});

describe('errorSummary', () => {
  const fields = readFields(
    { properties: { agent_steps: { title: 'Agent steps', group: 'stopping', type: 'integer' } } },
    'stop',
  );
  const summary = (...paths: string[]): string =>
    errorSummary(
      fields,
      paths.map((field) => ({ field, message: `bad ${field}` })),
    );

  it('names each invalid field once', () =>
    expect(summary('tags.0', 'tags.2', 'stop.agent_steps')).toBe('Check these fields: Tags, Agent steps.'));
  it('names the group that shows the errors of a section', () =>
    expect(summary('stop')).toBe('Check these fields: Stopping.'));
  it('includes the message of an error without a field in the form', () =>
    expect(summary('environment', 'tags')).toBe('environment: bad environment Check these fields: Tags.'));
  it('includes the message for the number of seeds', () =>
    expect(summary('nSeeds')).toBe('Seeds: bad nSeeds'));
});
