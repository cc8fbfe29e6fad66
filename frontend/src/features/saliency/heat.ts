/** A saliency map over the frame that the network saw. */
import type { Saliency } from '@/api/saliency';

type Rgb = readonly [number, number, number];

/** As in the paper: what the policy attends to is blue, what the value does red. */
export const COLOURS: Record<'policy' | 'value', Rgb> = { policy: [40, 110, 255], value: [255, 60, 40] };

export const maximum = (scores: readonly (readonly number[])[]): number =>
  Math.max(0, ...scores.map((row) => Math.max(0, ...row)));

/** The frame as RGBA. */
export function framePixels({
  frame,
  width,
  height,
  channels,
}: Saliency['map']): Uint8ClampedArray<ArrayBuffer> {
  const bytes = atob(frame);
  const pixels = new Uint8ClampedArray(4 * width * height);
  for (let at = 0; at < width * height; at++) {
    for (let c = 0; c < 3; c++)
      pixels[4 * at + c] = bytes.charCodeAt(at * channels + (channels === 3 ? c : 0));
    pixels[4 * at + 3] = 255;
  }
  return pixels;
}

/** A map as RGBA, a pixel for each of its places: the larger the score, the more opaque. */
export function heatPixels(
  scores: readonly (readonly number[])[],
  [red, green, blue]: Rgb,
): Uint8ClampedArray<ArrayBuffer> {
  const largest = maximum(scores) || 1;
  return Uint8ClampedArray.from(
    scores.flatMap((row) => row.flatMap((score) => [red, green, blue, Math.round((230 * score) / largest)])),
  );
}

function canvasOf(pixels: Uint8ClampedArray<ArrayBuffer>, width: number, height: number): HTMLCanvasElement {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [width, height];
  canvas.getContext('2d')?.putImageData(new ImageData(pixels, width, height), 0, 0);
  return canvas;
}

/** Draws a frame, and over it a map, whose places are interpolated. */
export function drawHeat(
  canvas: HTMLCanvasElement,
  { map }: Saliency,
  of: 'policy' | 'value',
  scale: number,
): void {
  const context = canvas.getContext('2d');
  if (!context) return;
  [canvas.width, canvas.height] = [map.width * scale, map.height * scale];
  context.imageSmoothingEnabled = false;
  context.drawImage(canvasOf(framePixels(map), map.width, map.height), 0, 0, canvas.width, canvas.height);
  const [first = 0, second = first + 1] = map.columns;
  const place = (second - first) * scale;
  context.imageSmoothingEnabled = true;
  context.imageSmoothingQuality = 'high';
  const heat = canvasOf(heatPixels(map[of], COLOURS[of]), map.columns.length, map.rows.length);
  context.drawImage(heat, 0, 0, place * map.columns.length, place * map.rows.length);
}
