import type { PlotlyHTMLElement } from 'plotly.js';
import { loadPlotly } from './plotly';

/** Saves what a chart shows, as a picture. */
export async function savePicture(
  element: PlotlyHTMLElement,
  format: 'png' | 'svg',
  name: string,
): Promise<void> {
  const plotly = await loadPlotly();
  const { clientWidth: width, clientHeight: height } = element;
  await plotly.downloadImage(element, {
    format,
    filename: name,
    width,
    height,
    ...(format === 'png' ? { scale: 2 } : {}),
  });
}

type Cell = string | number | null | undefined;

const cell = (value: Cell): string => {
  const text = String(value ?? '');
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** Saves rows as a file that spreadsheets read. */
export function saveCsv(header: readonly string[], rows: readonly (readonly Cell[])[], name: string): void {
  const text = [header, ...rows].map((row) => row.map(cell).join(',')).join('\n');
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([`${text}\n`], { type: 'text/csv' }));
  link.download = `${name}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
}
