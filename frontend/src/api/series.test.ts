import { expect, it } from 'vitest';
import { type Curve, mergeCurve, rangeParameters } from './series';

it('rangeParameters fetches a zoom with its width on either side, at the same resolution', () => {
  expect(rangeParameters([1000, 1500], 400)).toEqual({ points: 1200, x_from: 500, x_to: 2000 });
  expect(rangeParameters([100, 600], 400)).toEqual({ points: 1200, x_from: 0, x_to: 1100 });
  expect(rangeParameters(null, 400)).toEqual({ points: 400 });
});

it('mergeCurve keeps what precedes the first bucket of an update, also of merged buckets', () => {
  const curve = (first_bucket: number, reset: boolean, bucket: number[] | null, mean: number[]): Curve =>
    ({ first_bucket, reset, bucket, mean, x: mean, smoothed: null }) as Curve;
  const plain = mergeCurve(curve(0, true, null, [1, 2, 3]), curve(2, false, null, [4, 5]));
  expect(plain).toMatchObject({ mean: [1, 2, 4, 5], x: [1, 2, 4, 5], bucket: null, smoothed: null });
  // Buckets 0 and 1 are one, and so are 2 and 3.
  const merged = mergeCurve(curve(0, true, [1, 3], [1, 2]), curve(2, false, [4, 5], [6, 7]));
  expect(merged).toMatchObject({ mean: [1, 6, 7], bucket: [1, 4, 5] });
});
