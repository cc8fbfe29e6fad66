import { describe, expect, it, vi } from 'vitest';
import type { Range } from '@/api/series';
import { changed, formatZoom, parseZoom, Pointed, rangeAfter, searchOf, viewOf, zoomOf } from './curveView';

it('zoomOf reads the x range of a drag, null of a double click, and undefined of other events', () => {
  expect(zoomOf({ 'xaxis.range[0]': 1, 'xaxis.range[1]': 2, 'yaxis.range[0]': 0 })).toEqual([1, 2]);
  expect(zoomOf({ 'xaxis.autorange': true, 'yaxis.autorange': true })).toBeNull();
  expect(zoomOf({ 'yaxis.range[0]': 0, 'yaxis.range[1]': 1 })).toBeUndefined();
  expect(zoomOf({ autosize: true })).toBeUndefined();
});

describe('the view of charts in the address', () => {
  it('is read back as written', () => {
    const search = {
      x: 'frames' as const,
      smoothing: 'ema' as const,
      scale: 2e6,
      zoom: '1000..2500000',
      log: 'loss/td,loss/value',
    };
    expect(searchOf(viewOf(search))).toEqual(search);
    expect(viewOf(search)).toMatchObject({ zoom: [1000, 2_500_000], log: ['loss/td', 'loss/value'] });
    expect(viewOf({}).smoothing).toMatchObject({ kind: 'window', scale: null });
    expect(viewOf({ smooth: 0 }).smoothing).toMatchObject({ kind: 'points', weight: 0 });
    for (const settings of [{ smooth: 0 }, { smooth: 0.9 }, { scale: 500 }])
      expect(searchOf(viewOf(settings))).toMatchObject(settings);
  });

  it('is empty for the default', () =>
    expect(Object.values(searchOf(viewOf({}))).filter((value) => value !== undefined)).toEqual([]));

  it('has no range that is not one', () => {
    for (const wrong of ['', '5', '2..1', 'a..b', '1..1', '1..2..3']) expect(parseZoom(wrong)).toBeNull();
    expect(parseZoom(formatZoom([0.1234567891, 12_345_678_912]))).toEqual([0, 12_345_679_000]);
  });

  it('loses its range and scale with the x axis', () => {
    const view = viewOf({ zoom: '1..2', smoothing: 'ema', scale: 7 });
    const next = changed(view, { x: 'wall_time_s' });
    expect(next).toMatchObject({ zoom: null, smoothing: { kind: 'ema', scale: null } });
    expect(changed(view, { log: ['m'] })).toMatchObject({ zoom: [1, 2], smoothing: { scale: 7 } });
  });
});

it.each<Range>([
  [5e-7, 10],
  [1e9, 1e9 + 40],
  [123_456_789, 123_456_889],
  [2e-9, 3e-9],
  [1e14, 1e15],
])('the zoom from %d to %d comes back from the address within what a screen shows', (from, to) => {
  const [start, end] = parseZoom(formatZoom([from, to])) ?? [NaN, NaN];
  expect(Math.abs(start - from)).toBeLessThan((to - from) / 10_000);
  expect(Math.abs(end - to)).toBeLessThan((to - from) / 10_000);
});

describe('rangeAfter', () => {
  it('zooms out of a range whose start becomes a fraction above 0', () =>
    expect(rangeAfter('-', [1.1, 3.3])?.[1]).toBeCloseTo(4.4));

  it('moves by a tenth, but not below 0', () => {
    expect(rangeAfter('ArrowRight', [100, 200])).toEqual([110, 210]);
    expect(rangeAfter('ArrowLeft', [5, 105])).toEqual([0, 100]);
  });

  it('zooms in and out around the middle and resets', () => {
    expect(rangeAfter('+', [100, 200])).toEqual([125, 175]);
    expect(rangeAfter('-', [125, 175])).toEqual([100, 200]);
    expect(rangeAfter('0', [100, 200])).toBeNull();
    expect(rangeAfter('a', [100, 200])).toBeUndefined();
  });
});

describe('rangeAfter, many times', () => {
  const repeated = (key: string, start: Range): Range => {
    let range = start;
    for (let n = 0; n < 100; n++) range = rangeAfter(key, range) ?? [0, 0];
    return range;
  };

  it('stays within what the service accepts', () => {
    expect(repeated('-', [100, 200])).toEqual([0, 1e15]);
    expect(parseZoom(formatZoom(repeated('ArrowRight', [1e14, 9e14])))?.[1]).toBeLessThanOrEqual(1e15);
  });

  it('keeps two ends that the address can distinguish', () => {
    expect(parseZoom(formatZoom(repeated('+', [1_000_000, 2_000_000])))).not.toBeNull();
    expect(parseZoom(formatZoom(repeated('+', [0, 1])))).not.toBeNull();
  });
});

it('zoomOf moves a range that was dragged below 0', () => {
  expect(zoomOf({ 'xaxis.range': [-50, 50] })).toEqual([0, 100]);
});

it('Pointed notifies its listeners once per value, until they unsubscribe', () => {
  const crosshair = new Pointed<object>();
  const listener = vi.fn();
  const unsubscribe = crosshair.subscribe(listener);
  const place = { x: 1, chart: document.body, top: 10 };
  crosshair.set(place);
  crosshair.set(place);
  expect(listener).toHaveBeenCalledOnce();
  crosshair.set(null);
  unsubscribe();
  crosshair.set(place);
  expect(listener).toHaveBeenCalledTimes(2);
});
