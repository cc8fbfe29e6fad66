/** A long line as one vertical stroke a pixel column: no spike is lost, however few the columns. */

export type Envelope = { low: Float64Array; high: Float64Array };

export function envelope(values: ArrayLike<number>, columns: number): Envelope {
  const low = new Float64Array(columns).fill(NaN);
  const high = new Float64Array(columns).fill(NaN);
  const n = values.length;
  for (let column = 0; column < columns; column += 1) {
    const from = Math.floor((column * n) / columns);
    const to = Math.max(from + 1, Math.floor(((column + 1) * n) / columns));
    for (let index = from; index < to && index < n; index += 1) {
      const value = values[index] ?? NaN;
      if (Number.isNaN(value)) continue;
      if (!((low[column] ?? NaN) <= value)) low[column] = value;
      if (!((high[column] ?? NaN) >= value)) high[column] = value;
    }
  }
  return { low, high };
}

/** The least and the greatest of the values; 0 to 1 where there are none. */
export function range(values: ArrayLike<number>): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of Array.from(values)) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return [0, 1];
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

/** The decision that the moment `time_s` of a video of `duration_s` shows. */
export function stepAt(time_s: number, duration_s: number, steps: number): number {
  if (!(duration_s > 0) || steps < 1) return 0;
  return Math.min(steps - 1, Math.max(0, Math.floor((time_s / duration_s) * steps)));
}

/** The moment at which the video shows decision `step`: the middle of it, so that rounding is harmless. */
export function timeOf(step: number, duration_s: number, steps: number): number {
  return steps < 1 ? 0 : ((step + 0.5) / steps) * duration_s;
}
