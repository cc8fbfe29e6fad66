import { describe, expect, it } from 'vitest';
import { type Answer, type Figure, type Trace, wholeFigure, withTails } from './tails';

const COUNTS = { revisions: [1], n_total: 0, n_shown: 0, bands: [], scales: [] };
const answer = (traces: object[], more: Partial<Answer> = {}): Answer => ({
  ...COUNTS,
  data: traces,
  ...more,
});
const binary = (dtype: string, numbers: Uint8Array | Uint16Array | Float64Array) => ({
  dtype,
  bdata: btoa(String.fromCharCode(...new Uint8Array(numbers.buffer))),
});
const line = (more: object = {}) => ({
  type: 'scatter',
  uid: 'a',
  x: [10, 20, 30],
  y: [1, 2, 3],
  meta: { kind: 'line', n: [4, 4, 1] },
  ...more,
});
const traces = (figure: Figure | null): Trace[] => (figure?.data ?? []) as Trace[];
/** Of a trace as lists. */
const numbers = ({ x, y, meta }: Trace) => ({
  x: [...(x ?? [])],
  y: [...(y ?? [])],
  bucket: [...(meta?.bucket ?? [])],
});

describe('wholeFigure', () => {
  it('reads typed arrays and lists, and leaves texts as they are', () => {
    const [first, second] = traces(
      wholeFigure(
        answer([
          { x: binary('u2', Uint16Array.of(1, 65535)), y: binary('f8', Float64Array.of(0.5, NaN)) },
          { x: ['a', 'b'], y: [1, null], text: ['one', 'two'] },
        ]),
      ),
    );
    expect(first).toEqual({ x: Float64Array.of(1, 65535), y: Float64Array.of(0.5, NaN) });
    expect(second).toEqual({ x: ['a', 'b'], y: Float64Array.of(1, NaN), text: ['one', 'two'] });
  });

  it('numbers the buckets of a trace that grows, unless they are given', () => {
    const merged = line({ uid: 'b', meta: { bucket: [1, 3, 4] } });
    const [plain, given] = traces(wholeFigure(answer([line(), merged])));
    expect(plain?.meta?.bucket).toEqual(Float64Array.of(0, 1, 2));
    expect(given?.meta?.bucket).toEqual(Float64Array.of(1, 3, 4));
  });
});

describe('withTails', () => {
  const marks = { name: 'checkpoints', x: [5], y: [0] };
  const figure = wholeFigure(
    answer([line(), marks], { layout: { title: { text: 'before' } }, x: 'iterations' }),
  );

  it('replaces the points from a bucket on, and keeps what did not change', () => {
    const tail = { uid: 'a', from: 2, x: [35, 40], y: [3.5, 4], meta: { n: [4, 2] }, mode: 'lines' };
    const updated = withTails(figure, answer([tail], { revisions: [2], n_total: 17 }));
    expect(updated).toMatchObject({
      revisions: [2],
      n_total: 17,
      x: 'iterations',
      layout: { title: { text: 'before' } },
    });
    const [grown, others] = traces(updated);
    expect(grown && numbers(grown)).toEqual({ x: [10, 20, 35, 40], y: [1, 2, 3.5, 4], bucket: [0, 1, 2, 3] });
    expect(grown).toMatchObject({ mode: 'lines', meta: { kind: 'line', n: Float64Array.of(4, 4, 4, 2) } });
    expect(others).toBe(figure.data[1]);
    expect(withTails(figure, answer([]))?.data[0]).toBe(figure.data[0]);
  });

  it('cuts an outline on its way forth and back', () => {
    const outline = line({
      x: [1, 2, 3, 3, 2, 1],
      y: [9, 9, 9, 0, 0, 0],
      meta: { bucket: [0, 1, 2, 2, 1, 0] },
    });
    const tail = {
      uid: 'a',
      from: 2,
      x: [null, 2, 3.5, 3.5, 2],
      y: [null, 9, 9, 0, 0],
      meta: { bucket: [2, 2, 2, 2, 2] },
    };
    const [grown] = traces(withTails(wholeFigure(answer([outline])), answer([tail])));
    expect(grown && numbers(grown).x).toEqual([1, 2, 2, 1, NaN, 2, 3.5, 3.5, 2]);
    expect(grown && numbers(grown).bucket).toEqual([0, 1, 1, 0, 2, 2, 2, 2, 2]);
  });

  it('replaces whole traces and properties, and with a layout the other traces', () => {
    const whole = withTails(figure, answer([line({ x: [1], y: [1], meta: {} })]));
    expect(numbers(traces(whole)[0] ?? {})).toEqual({ x: [1], y: [1], bucket: [0] });
    const named = withTails(figure, answer([{ uid: 'a', showlegend: true }], { layout: {} }));
    expect(traces(named)).toEqual([{ ...figure.data[0], showlegend: true }]);
    expect(named?.layout).toEqual({});
  });

  it('needs the whole figure if there is another trace', () => {
    expect(withTails(figure, answer([line({ uid: 'new' })]))).toBeNull();
  });
});
