import { envelope, range } from './envelope';

/** Draws one line over `values` into the band from `top` to `top + height`. */
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
  for (let column = 0; column < columns; column += 1) {
    const from = band.low[column] ?? NaN;
    const to = band.high[column] ?? NaN;
    if (Number.isNaN(from)) continue;
    context.lineTo(column + 0.5, y(from));
    if (to !== from) context.lineTo(column + 0.5, y(to));
  }
  context.stroke();
}

/** Bounds of a line that shows where zero is. */
export function withZero(values: ArrayLike<number>): [number, number] {
  const [low, high] = range(values);
  return [Math.min(low, 0), Math.max(high, 0)];
}

/** The decisions in which a life was lost. */
export function lostLives(lives: ArrayLike<number>): number[] {
  const steps: number[] = [];
  for (let step = 1; step < lives.length; step += 1) {
    if ((lives[step] ?? 0) < (lives[step - 1] ?? 0)) steps.push(step);
  }
  return steps;
}
