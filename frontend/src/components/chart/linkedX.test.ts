import { expect, it, vi } from 'vitest';
import { LinkedX, zoomOf } from './linkedX';

it('reads a drag and a double click, and nothing else', () => {
  expect(zoomOf({ 'xaxis.range[0]': 1, 'xaxis.range[1]': 2, 'yaxis.range[0]': 0 })).toEqual([1, 2]);
  expect(zoomOf({ 'xaxis.autorange': true, 'yaxis.autorange': true })).toBeNull();
  expect(zoomOf({ 'yaxis.range[0]': 0, 'yaxis.range[1]': 1 })).toBeUndefined();
  expect(zoomOf({ autosize: true })).toBeUndefined();
});

it('tells every chart of a new range once', () => {
  const linked = new LinkedX();
  const heard = vi.fn();
  const stop = linked.subscribe(heard);
  linked.set([1, 2]);
  linked.set([1, 2]);
  expect(heard).toHaveBeenCalledTimes(1);
  expect(linked.range()).toEqual([1, 2]);
  stop();
  linked.set(null);
  expect(heard).toHaveBeenCalledTimes(1);
});
