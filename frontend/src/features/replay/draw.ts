/** Drawing of an episode's timeline on a canvas. */

type Envelope = { low: Float64Array; high: Float64Array };

/** The minimum and the maximum of `values` in each pixel column, so that no spike is lost. */
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

/** The smallest and the largest value, widened for constant values; 0 to 1 without values. */
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

/** Draws `values` as a line in the band from `top` to `top + height`; NaN is a gap. */
export function drawLine(
  context: CanvasRenderingContext2D,
  values: ArrayLike<number>,
  bounds: [number, number],
  colour: string,
  { top, width, height }: { top: number; width: number; height: number },
): void {
  const [low, high] = bounds;
  const y = (value: number): number => top + height - ((value - low) / (high - low)) * height;
  const columns = Math.max(1, Math.floor(width));
  const band = envelope(values, columns);
  context.strokeStyle = colour;
  context.lineWidth = 1.25;
  context.beginPath();
  let isGap = true;
  for (let column = 0; column < columns; column += 1) {
    const from = band.low[column] ?? NaN;
    const to = band.high[column] ?? NaN;
    if (Number.isNaN(from)) {
      isGap = true;
      continue;
    }
    // From the column's edge: a column between gaps would be no line.
    if (isGap) context.moveTo(column, y(from));
    isGap = false;
    context.lineTo(column + 0.5, y(from));
    if (to !== from) context.lineTo(column + 0.5, y(to));
  }
  context.stroke();
}

/** The range of the values, extended to include zero. */
export function withZero(values: ArrayLike<number>): [number, number] {
  const [low, high] = range(values);
  return [Math.min(low, 0), Math.max(high, 0)];
}

/** Round numbers within the range, at most `count` of them: multiples of 1, 2 or 5 times a power of ten. */
export function ticks([low, high]: readonly [number, number], count: number): number[] {
  const raw = (high - low) / Math.max(1, count);
  if (!(raw > 0) || !Number.isFinite(raw)) return [];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, index) =>
    Number(((first + index) * step).toPrecision(12)),
  );
}

/** The steps at which a life was lost. */
export function lostLives(lives: ArrayLike<number>): number[] {
  const steps: number[] = [];
  for (let step = 1; step < lives.length; step += 1) {
    if ((lives[step] ?? 0) < (lives[step - 1] ?? 0)) steps.push(step);
  }
  return steps;
}
