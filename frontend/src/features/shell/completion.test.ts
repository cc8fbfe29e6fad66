import { describe, expect, it } from 'vitest';
import { complete, isUnfinished } from './completion';

const VALUES = {
  algorithm: ['paac', 'a3c'],
  environment: ['ALE/Pong-v5', 'CartPole-v1'],
  tag: ['two words'],
};

describe('complete', () => {
  const completions = (query: string, caret = query.length): string[] => complete(query, caret, VALUES);

  it('completes a field’s name', () => expect(completions('alg')).toEqual(['algorithm:']));
  it('completes a numeric field with a comparison', () => expect(completions('sco')).toEqual(['score>']));
  it('completes a field’s value', () => expect(completions('algorithm:p')).toEqual(['algorithm:paac']));
  it('matches any part of a value', () =>
    expect(completions('environment:pong')).toEqual(['environment:ALE/Pong-v5']));
  it('quotes a value with spaces', () => expect(completions('tag:two')).toEqual(['tag:"two words"']));
  it('keeps the text around the caret', () =>
    expect(completions('state:running alg score>1', 17)).toEqual(['state:running algorithm: score>1']));
  it('returns nothing for an empty query and for plain text', () => {
    expect(completions('')).toEqual([]);
    expect(completions('pong')).toEqual([]);
  });
});

describe('completion of settings and metrics', () => {
  const EXTRA = [
    { name: 'config.learning_rate', kind: 'number' },
    { name: 'config.network', kind: 'text' },
    { name: 'eval/noop_starts/mean_return', kind: 'number' },
  ];
  const completions = (query: string): string[] => complete(query, query.length, VALUES, EXTRA);

  it('finds a setting by any part of its path', () => {
    expect(completions('score>1 learn')).toEqual(['score>1 config.learning_rate=']);
    expect(completions('config.net')).toEqual(['config.network:']);
  });
  it('finds a metric, with a comparison', () =>
    expect(completions('noop')).toEqual(['eval/noop_starts/mean_return>']));
  it('completes the statistics of a metric', () =>
    expect(completions('eval/noop_starts/mean_return.b')).toEqual(['eval/noop_starts/mean_return.best>']));
  it('completes the values of a setting', () =>
    expect(complete('config.network:n', 16, { 'config.network': ['nips', 'mlp'] }, EXTRA)).toEqual([
      'config.network:nips',
    ]));
  it('waits while a path or a value is missing, but not for a word', () => {
    const unfinished = (query: string): boolean => isUnfinished(query, query.length, VALUES, EXTRA);
    expect(unfinished('config.lear')).toBe(true);
    expect(unfinished('config.learning_rate>=')).toBe(true);
    expect(unfinished('score >')).toBe(true);
    expect(unfinished('config.learning_rate>=1e-3')).toBe(false);
    expect(unfinished('noop')).toBe(false);
  });
});

describe('isUnfinished', () => {
  const unfinished = (query: string, caret = query.length): boolean => isUnfinished(query, caret, VALUES);

  it('is true while the word can be completed', () => {
    expect(unfinished('tag:new alg')).toBe(true);
    expect(unfinished('algorithm:p')).toBe(true);
    expect(unfinished('alg score>1', 3)).toBe(true);
  });
  it('is true while the value is missing', () => {
    expect(unfinished('score>')).toBe(true);
    expect(unfinished('notes:')).toBe(true);
  });
  it('is false after a value, a space, or a word that is not a field', () => {
    expect(unfinished('algorithm:paac')).toBe(false);
    expect(unfinished('score>1')).toBe(false);
    expect(unfinished('Algorithm:PAAC')).toBe(false);
    expect(unfinished('environment:Pong')).toBe(false);
    expect(unfinished('alg ')).toBe(false);
    expect(unfinished('pong')).toBe(false);
  });
});
