import type { Data } from 'plotly.js';
import { describe, expect, it } from 'vitest';
import { apart, canLabel, endLabels, LABEL_PX, withoutLines } from './endLabels';

const line = (name: string, y: number[], more: object = {}): Data => ({
  name,
  x: [10, 20, 30],
  y,
  meta: { kind: 'line' },
  line: { color: '#123456' },
  ...more,
});

describe('labels at the ends of lines', () => {
  it('stand at the last value in view', () => {
    const lines = [line('a &lt;b', [1, 2, NaN]), line('seed', [1, 1, 1], { showlegend: false })];
    expect(endLabels(lines, [0, 30])).toEqual([
      { name: 'a <b', series: undefined, colour: '#123456', value: 2 },
    ]);
    expect(endLabels(lines, [0, 15])).toMatchObject([{ value: 1 }]);
    expect(endLabels(lines, [25, 30])).toEqual([]);
  });

  it('stand at the last part of a line, also where not all seeds have a value', () => {
    const of = (kind: string) => ({ meta: { kind, group: 'g', source: '', label: { name: 'lr 0.1' } } });
    const lines = [line('x', [1, NaN, NaN], of('line')), line('x', [NaN, 2, 3], of('partial'))];
    expect(endLabels(lines, [0, 30])).toMatchObject([{ name: 'lr 0.1', value: 3 }]);
  });

  it('need several lines, and room', () => {
    const two = [line('a', [1, 2, 3]), line('b', [1, 2, 3])];
    expect(canLabel(two, {}, 800, 400)).toBe(true);
    expect(canLabel(two.slice(1), {}, 800, 400)).toBe(false);
    expect(canLabel(two, {}, 360, 400)).toBe(false);
    expect(canLabel([line('a'.repeat(60), [1]), ...two], {}, 800, 400)).toBe(false);
    expect(canLabel(two, { legend: { orientation: 'v' } }, 800, 400)).toBe(false);
    const many = Array.from({ length: 30 }, (_, at) => line(String(at), [1, 2, 3]));
    expect(canLabel(many, {}, 800, 400)).toBe(false);
  });

  it('replace the legend of lines, not that of other marks', () => {
    const marks: Data = { name: 'evaluation', x: [1], y: [1] };
    expect(withoutLines([line('a', [1])], {}).layout).toMatchObject({ showlegend: false });
    const { data, layout } = withoutLines([line('a', [1]), marks], {});
    expect(layout.showlegend).toBe(true);
    expect(withoutLines([marks], { showlegend: false }).layout.showlegend).toBe(false);
    expect(data[0]).toMatchObject({ showlegend: false });
    expect(data[1]).toEqual(marks);
  });

  it('never cover each other, in the order of their lines, inside the plot', () => {
    for (const wanted of [[0, 1, 2], [95, 96, 97], [50], [40, 45, 10, 90], [50, 50, 50, 50]]) {
      const tops = apart(wanted, 0, 100);
      const sorted = tops.toSorted((a, b) => a - b);
      for (const [at, top] of sorted.entries()) {
        expect(top).toBeGreaterThanOrEqual(0);
        expect(top).toBeLessThanOrEqual(100 - LABEL_PX);
        if (at > 0) expect(top - (sorted[at - 1] ?? 0)).toBeGreaterThanOrEqual(LABEL_PX - 1e-9);
      }
      for (const [a, first] of wanted.entries())
        for (const [b, second] of wanted.entries())
          if (first < second) expect(tops[a]).toBeLessThan(tops[b] ?? 0);
    }
    expect(apart([50], 0, 100)).toEqual([50]);
  });
});
