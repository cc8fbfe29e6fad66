import { describe, expect, it } from 'vitest';
import { drawLine, envelope, lostLives, range, ticks } from './draw';

describe('envelope', () => {
  it('keeps a single spike among a thousand values', () => {
    const values = new Array<number>(1000).fill(0);
    values[517] = 9;
    const { low, high } = envelope(values, 10);
    expect(Array.from(high)).toEqual([0, 0, 0, 0, 0, 9, 0, 0, 0, 0]);
    expect(Array.from(low)).toEqual(new Array(10).fill(0));
  });

  it('repeats values when there are more columns than values', () => {
    expect(Array.from(envelope([1, 2], 4).low)).toEqual([1, 1, 2, 2]);
  });

  it('ignores NaN', () => {
    const { low, high } = envelope([NaN, 3, NaN, 1], 1);
    expect([low[0], high[0]]).toEqual([1, 3]);
  });
});

it('drawLine leaves a gap where values are not known', () => {
  const path: string[] = [];
  const context = {
    beginPath: () => undefined,
    moveTo: (x: number, y: number) => path.push(`M${x} ${y}`),
    lineTo: (x: number, y: number) => path.push(`L${x} ${y}`),
    stroke: () => undefined,
  } as unknown as CanvasRenderingContext2D;
  const band = { top: 0, width: 5, height: 10 };
  drawLine(context, [NaN, 0, 1, NaN, 1], [0, 1], 'red', band);
  expect(path).toEqual(['M1 10', 'L1.5 10', 'L2.5 0', 'M4 0', 'L4.5 0']);
});

describe('range', () => {
  it('spans the values', () => expect(range([3, -1, 2])).toEqual([-1, 3]));
  it('widens the range of constant values', () => expect(range([2, 2])).toEqual([1.5, 2.5]));
  it('is 0 to 1 without values', () => expect(range([])).toEqual([0, 1]));
});

it('lostLives returns the steps at which a life was lost', () =>
  expect(lostLives([3, 3, 2, 2, 0])).toEqual([2, 4]));

it('lostLives is empty when lives are only gained, or without steps', () => {
  expect(lostLives([1, 2, 3])).toEqual([]);
  expect(lostLives([])).toEqual([]);
});

describe('ticks', () => {
  it.each([
    [[0, 1], 2, [0, 0.5, 1]],
    [[-1, 1], 2, [-1, 0, 1]],
    [[0, 2225], 6, [0, 500, 1000, 1500, 2000]],
    [[0.1, 0.9], 2, [0.5]],
    [[2, 2], 2, []],
  ] as const)('%j with at most %d gives %j', (range, count, expected) =>
    expect(ticks(range, count)).toEqual(expected),
  );
});
