import { describe, expect, it } from 'vitest';
import { complete, isUnfinished } from './completion';

const VALUES = {
  algorithm: ['paac', 'a3c'],
  environment: ['ALE/Pong-v5', 'CartPole-v1'],
  tag: ['two words'],
};
const at = (query: string, caret = query.length): string[] => complete(query, caret, VALUES);

describe('complete', () => {
  it('offers fields that begin so', () => expect(at('alg')).toEqual(['algorithm:']));
  it('offers comparisons for numbers', () => expect(at('sco')).toEqual(['score>']));
  it('offers values of a field', () => expect(at('algorithm:p')).toEqual(['algorithm:paac']));
  it('finds values by any part of them', () =>
    expect(at('environment:pong')).toEqual(['environment:ALE/Pong-v5']));
  it('quotes values with blanks', () => expect(at('tag:two')).toEqual(['tag:"two words"']));
  it('keeps what stands before and after', () =>
    expect(at('state:running alg score>1', 17)).toEqual(['state:running algorithm: score>1']));
  it('is silent where there is nothing to offer', () => {
    expect(at('')).toEqual([]);
    expect(at('pong')).toEqual([]);
  });
});

describe('isUnfinished', () => {
  const unfinished = (query: string, caret = query.length): boolean => isUnfinished(query, caret, VALUES);
  it('holds while a word could go on', () => {
    expect(unfinished('tag:new alg')).toBe(true);
    expect(unfinished('algorithm:p')).toBe(true);
    expect(unfinished('alg score>1', 3)).toBe(true);
  });
  it('holds while a value is missing', () => {
    expect(unfinished('score>')).toBe(true);
    expect(unfinished('notes:')).toBe(true);
  });
  it('ends with a value, a blank, or a word that is none of the fields', () => {
    expect(unfinished('algorithm:paac')).toBe(false);
    expect(unfinished('score>1')).toBe(false);
    expect(unfinished('Algorithm:PAAC')).toBe(false);
    expect(unfinished('environment:Pong')).toBe(false);
    expect(unfinished('alg ')).toBe(false);
    expect(unfinished('pong')).toBe(false);
  });
});
