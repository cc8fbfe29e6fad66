/** Draws a figure for a paper: an SVG with its font, and from it a PNG of twice the size or a PDF. */
import type { Figure } from '@/api/tails';
import { loadPlotly } from '../usePlotly';
import { withTickTexts } from '../scale';
import { FAMILY, type FontPart, fontsFor } from './fonts';
import { fewerTicks, printFigure, type PrintOptions, PX_PER_IN } from './printLayout';
import { missingCharacters, replaceTexts, textsOf, widthIn } from './texts';

const CONFIG = { staticPlot: true, displayModeBar: false, responsive: false };
const PNG_SCALE = 2;
/** The most that an entry of a legend needs. */
const ENTRY_PX = 60;

/** A drawn figure: the texts of its SVG are still texts. */
export type Drawing = { svg: SVGSVGElement; width_px: number; height_px: number; fonts: readonly FontPart[] };

type Drawn = HTMLElement & { _fullLayout?: { legend?: { _height?: number }; _size?: { h: number } } };

/** How much higher a drawn figure must be for its legend; a legend below must not shrink the plot. */
function legendRoom({ _fullLayout: layout }: Drawn, place: PrintOptions['legend']): number {
  const [legend, plot] = [layout?.legend?._height ?? 0, layout?._size?.h ?? 0];
  if (place === 'below') return legend;
  return Math.max(0, legend / (place === 'inside' ? 0.94 : 1) - plot);
}

/** Draws with Plotly, out of view. */
export async function drawn(
  figure: Pick<Figure, 'data' | 'layout'>,
  options: PrintOptions,
): Promise<Drawing> {
  const names = [
    ...figure.data.map(({ name }) => name ?? ''),
    ...(options.entries ?? []).map(({ text }) => text),
  ];
  const [plotly, measuring] = await Promise.all([loadPlotly(), fontsFor([...names, options.title])]);
  const { data, layout } = printFigure(figure, options, (text, size) => widthIn(measuring, text, size));
  const box: Drawn = document.createElement('div');
  Object.assign(box.style, { position: 'fixed', left: '-10000px', top: '0' });
  document.body.append(box);
  try {
    const [width, height] = [layout.width ?? 0, layout.height ?? 0];
    // Until the legend's height is known, the figure has more than enough: a plot without height is refused.
    const spare = layout.showlegend && options.legend === 'below' ? ENTRY_PX * data.length : 0;
    await plotly.newPlot(box, data, withTickTexts({ ...layout, height: height + spare }), CONFIG);
    const height_px = Math.ceil(height + (layout.showlegend ? legendRoom(box, options.legend) : 0));
    const changes = {
      ...fewerTicks(box._fullLayout ?? {}),
      ...(height_px !== height + spare && { height: height_px }),
    };
    if (Object.keys(changes).length > 0) await plotly.relayout(box, changes);
    const image = { format: 'svg', width, height: height_px, imageDataOnly: true } as const;
    const text = await plotly.toImage(box, image);
    const svg = new DOMParser().parseFromString(text, 'image/svg+xml')
      .documentElement as unknown as SVGSVGElement;
    if (svg.localName !== 'svg') throw new Error('The chart library gave no SVG.');
    // Transparent, for the pointer.
    for (const part of svg.querySelectorAll('.legendtoggle, .drag')) part.remove();
    svg.setAttribute('viewBox', `0 0 ${width} ${height_px}`);
    return { svg, width_px: width, height_px, fonts: await fontsFor(textsOf(svg)) };
  } finally {
    plotly.purge(box);
    box.remove();
  }
}

/** The SVG with each text as plain lines at their places. */
export function withPlainTexts({ svg, fonts }: Drawing): SVGSVGElement {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  replaceTexts(copy, fonts);
  return copy;
}

/** The characters that the figure's font lacks. */
export const missingIn = ({ svg, fonts }: Drawing): string => missingCharacters(svg, fonts);

/** As an SVG file, with its font inside. */
export function svgFile(drawing: Drawing): Blob {
  const svg = withPlainTexts(drawing);
  svg.setAttribute('width', `${drawing.width_px / PX_PER_IN}in`);
  svg.setAttribute('height', `${drawing.height_px / PX_PER_IN}in`);
  const style = svg.ownerDocument.createElementNS(svg.namespaceURI, 'style');
  style.textContent = drawing.fonts
    .map(
      ({ family, woff }) =>
        `@font-face{font-family:'${family}';src:url(data:font/woff;base64,${base64(woff)}) format('woff')}`,
    )
    .join('');
  svg.prepend(style);
  return new Blob([new XMLSerializer().serializeToString(svg)], { type: 'image/svg+xml' });
}

/** As a PNG file of twice the size. */
export async function pngFile(drawing: Drawing): Promise<Blob> {
  const url = URL.createObjectURL(svgFile(drawing));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [drawing.width_px * PNG_SCALE, drawing.height_px * PNG_SCALE];
    const context = canvas.getContext('2d');
    if (!context) throw new Error('This browser cannot draw images.');
    context.fillStyle = '#fff';
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, 'image/png'));
    if (!blob) throw new Error('This browser cannot write PNG files.');
    return blob;
  } finally {
    URL.revokeObjectURL(url);
  }
}

const PT_PER_PX = 72 / PX_PER_IN;

function base64(file: ArrayBuffer): string {
  let text = '';
  for (const byte of new Uint8Array(file)) text += String.fromCharCode(byte);
  return btoa(text);
}

/** As a PDF file of the figure's size, with its font. */
export async function pdfFile(drawing: Drawing, about: { title: string; subject: string }): Promise<Blob> {
  const [{ jsPDF }, { svg2pdf }] = await Promise.all([import('jspdf'), import('svg2pdf.js')]);
  const [width, height] = [drawing.width_px * PT_PER_PX, drawing.height_px * PT_PER_PX];
  const pdf = new jsPDF({
    unit: 'pt',
    format: [width, height],
    orientation: width > height ? 'landscape' : 'portrait',
    compress: true,
    putOnlyUsedFonts: true,
  });
  pdf.setProperties({ ...about, creator: 'Callboard' });
  for (const { family, file } of drawing.fonts) {
    const name = `${family.replaceAll(' ', '')}.ttf`;
    pdf.addFileToVFS(name, base64(file));
    pdf.addFont(name, family, 'normal', 'normal');
  }
  pdf.setFont(FAMILY, 'normal');
  // svg2pdf reads computed styles, which only elements of a page have.
  const box = document.createElement('div');
  Object.assign(box.style, { position: 'fixed', left: '-10000px', top: '0' });
  const drawnSvg = document.importNode(withPlainTexts(drawing), true);
  box.append(drawnSvg);
  document.body.append(box);
  try {
    await svg2pdf(drawnSvg, pdf, { x: 0, y: 0, width, height });
  } finally {
    box.remove();
  }
  return pdf.output('blob');
}
