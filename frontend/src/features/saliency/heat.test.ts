import { expect, it } from 'vitest';
import { framePixels, heatPixels, maximum } from './heat';

it('the most salient place is the most opaque, and none is so without scores', () => {
  const scores = [
    [0, 1],
    [0.5, 0.25],
  ];
  expect(maximum(scores)).toBe(1);
  const opacities = [...heatPixels(scores, [1, 2, 3])].filter((_, at) => at % 4 === 3);
  expect(opacities).toEqual([0, 230, 115, 58]);
  expect([...heatPixels([[0, 0]], [1, 2, 3])]).toEqual([1, 2, 3, 0, 1, 2, 3, 0]);
});

it('grey and coloured frames become pixels', () => {
  const map = { width: 2, height: 1, rows: [], columns: [], policy: [], value: [] };
  const grey = framePixels({ ...map, channels: 1, frame: btoa('\u0007\u0009') });
  expect([...grey]).toEqual([7, 7, 7, 255, 9, 9, 9, 255]);
  const rgb = framePixels({ ...map, channels: 3, frame: btoa('\u0001\u0002\u0003\u0004\u0005\u0006') });
  expect([...rgb]).toEqual([1, 2, 3, 255, 4, 5, 6, 255]);
});
