/** A figure of a page as a figure for a paper: light on white, of a fixed size, with the font's size in points. */
import type { Annotations, Data, Layout, LayoutAxis, Legend, Shape } from 'plotly.js';
import type { Figure, Trace } from '@/api/tails';
import { FAMILY } from './fonts';

export const WIDTHS = {
  column: { label: 'One column, 3.25 in', width_in: 3.25, font_pt: 8 },
  page: { label: 'Two columns, 6.75 in', width_in: 6.75, font_pt: 8 },
  slide: { label: 'Slide, 10 in', width_in: 10, font_pt: 16 },
} as const;

export const LEGENDS = {
  below: 'Below',
  right: 'At the right',
  inside: 'Inside',
  none: 'None',
} as const;

/** An entry of a figure's legend. */
export type LegendEntry = {
  /** Its number in the figure. */
  number: number;
  /** The name of its traces in the figure. */
  name: string;
  text: string;
};

/** The entries of a figure's legend, as the figure has them. */
export function legendEntries(data: readonly Data[]): LegendEntry[] {
  const entries = (data as readonly Trace[]).filter(({ showlegend }) => showlegend !== false);
  const names = [...new Set(entries.flatMap(({ name }) => name ?? []))];
  return names.map((name, number) => ({ number, name, text: plain(name) }));
}

export type PrintOptions = {
  width: keyof typeof WIDTHS;
  line_width_pt: number;
  legend: keyof typeof LEGENDS;
  /** Empty for none. */
  title: string;
  /** The entries of the legend in their order; those that are left out follow as the figure has them. */
  entries?: readonly LegendEntry[];
};

export const PX_PER_IN = 96;
const PX_PER_PT = PX_PER_IN / 72;
const ASPECT = 0.62;
/** Of the width or height of a figure, what the title of an axis has room for on a line. */
const AXIS_SHARE = 0.72;
/** The width of lines in figures of a page, and its font size. */
const [LINE_PX, FONT_PX] = [2, 12];
/** The room for an entry of the legend, as a share of the figure's width. */
const ROOMS = { below: 1, right: 0.4, inside: 0.6, none: 1 };
const INK = '#1b1e23';
const MUTED = '#59616c';

/** The width in CSS pixels at which a figure of the page's font size has as many letters on a line as the print. */
export const widthAtFontOfPages = (width: PrintOptions['width']): number =>
  Math.round((WIDTHS[width].width_in * 72 * FONT_PX) / WIDTHS[width].font_pt);

/** Plotly renders text as HTML and replaces `%{…}` in it. */
const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('%{', '%&#123;');

/** A text in lines of at most some width, broken at spaces where it has any. */
export function wrapped(text: string, width_px: number, widthOf: (text: string) => number): string[] {
  const lines: string[] = [];
  let line = '';
  const push = (word: string): void => {
    let rest = word;
    while (widthOf(rest) > width_px && Array.from(rest).length > 1) {
      const characters = Array.from(rest);
      let n = characters.length - 1;
      while (n > 1 && widthOf(characters.slice(0, n).join('')) > width_px) n -= 1;
      lines.push(characters.slice(0, n).join(''));
      rest = characters.slice(n).join('');
    }
    line = rest;
  };
  for (const word of text.split(' ')) {
    const longer = line ? `${line} ${word}` : word;
    if (line && widthOf(longer) > width_px) {
      lines.push(line);
      push(word);
    } else if (widthOf(longer) > width_px) push(longer);
    else line = longer;
  }
  return [...lines, line];
}

/** What stands for subscripts and arrows, which the font of figures lacks. */
const SUBSCRIPTS: Readonly<Record<string, string>> = {
  ₐ: '_a',
  ₑ: '_e',
  ₘ: '_m',
  ₙ: '_n',
  ₚ: '_p',
  ₜ: '_t',
  '₀': '_0',
  '→': 'to',
};

const plain = (text: string): string =>
  text
    .replaceAll(/[ₐₑₘₙₚₜ₀→]/g, (subscript) => SUBSCRIPTS[subscript] ?? subscript)
    .replaceAll(/<br\s*\/?>/g, ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

type Sized = { width?: number | undefined; size?: number | readonly number[] | undefined };
type Drawn = Trace & { legendgroup?: string; line?: Sized; marker?: Sized & { line?: Sized } };

function printTrace(
  trace: Data,
  scale: { line: number; font: number },
  label: (text: string) => string,
  entries: readonly LegendEntry[],
): Data {
  // Groups would be apart in the legend, each in a column of its own.
  const { line, marker, name, legendgroup: _group, ...rest } = trace as Drawn;
  const rank = entries.findIndex((entry) => entry.name === name);
  const sized = (value: Sized['size']) =>
    typeof value === 'object' ? value.map((size) => size * scale.font) : (value ?? 6) * scale.font;
  return {
    ...rest,
    ...(name !== undefined && {
      name: label(entries[rank]?.text ?? name),
      ...(rank >= 0 && { legendrank: rank }),
    }),
    ...(line && { line: { ...line, width: (line.width ?? LINE_PX) * scale.line } }),
    ...(marker && {
      marker: {
        ...marker,
        size: sized(marker.size),
        ...(marker.line && { line: { ...marker.line, width: (marker.line.width ?? 0) * scale.line } }),
      },
    }),
  } as unknown as Data;
}

const placeOf = (legend: PrintOptions['legend'], font_px: number): Partial<Legend> => {
  const text = { font: { size: font_px, color: INK }, bgcolor: 'rgba(255,255,255,0)', borderwidth: 0 };
  // A legend that scrolls would be cut.
  const whole = { maxheight: 1000 };
  if (legend === 'right')
    return {
      ...text,
      ...whole,
      orientation: 'v',
      x: 1.02,
      xanchor: 'left',
      y: 1,
      yanchor: 'top',
      yref: 'paper',
    };
  if (legend === 'inside')
    return {
      ...text,
      ...whole,
      bgcolor: 'rgba(255,255,255,0.75)',
      orientation: 'v',
      x: 0.02,
      xanchor: 'left',
      y: 0.98,
      yanchor: 'top',
      yref: 'paper',
    };
  return {
    ...text,
    ...whole,
    orientation: 'h',
    x: 0,
    xanchor: 'left',
    xref: 'container',
    y: 0,
    yanchor: 'bottom',
    yref: 'container',
  };
};

/** The figure and its layout; the legend below needs further height, which only a first drawing shows. */
export function printFigure(
  { data, layout }: Pick<Figure, 'data' | 'layout'>,
  options: PrintOptions,
  widthOf: (text: string, font_px: number) => number,
): { data: Data[]; layout: Partial<Layout> } {
  const { width_in, font_pt } = WIDTHS[options.width];
  const font_px = font_pt * PX_PER_PT;
  const width = width_in * PX_PER_IN;
  const scale = { line: (options.line_width_pt * PX_PER_PT) / LINE_PX, font: font_px / FONT_PX };
  const lines = (text: string, room: number): string =>
    wrapped(plain(text), room, (part) => widthOf(part, font_px))
      .map(escaped)
      .join('<br>');
  // Before a legend's entry stand a symbol of 40 px and a gap of 8.
  const room = ROOMS[options.legend] * width - 48;
  const entries = (data as readonly Trace[]).filter(({ showlegend }) => showlegend !== false);
  const hasLegend = options.legend !== 'none' && (entries.length > 1 || layout.showlegend === true);
  // Panels, and bars of many environments, are as high as they were laid out.
  const height_px = layout.height === undefined ? ASPECT * width : layout.height * scale.font;
  const axis = (name: string, given: Partial<LayoutAxis> | undefined): Partial<LayoutAxis> => ({
    ...given,
    automargin: true,
    tickfont: { size: font_px, color: INK },
    title: {
      ...given?.title,
      // A title that is longer than its axis would leave the page.
      ...(given?.title?.text && {
        text: lines(given.title.text, AXIS_SHARE * (name.startsWith('x') ? width : height_px)),
      }),
      font: { size: font_px, color: INK },
      standoff: font_px * 0.6,
    },
    tickcolor: MUTED,
    linecolor: MUTED,
    linewidth: 0.75,
    tickwidth: 0.75,
    ticklen: 3,
    gridwidth: 0.5,
  });
  const axes = Object.fromEntries(
    Object.entries(layout)
      .filter(([name]) => /^[xy]axis\d*$/.test(name))
      .map(([name, given]) => [name, axis(name, given as Partial<LayoutAxis>)]),
  );
  const title = options.title ? lines(options.title, width - 2 * font_px) : '';
  const n_title = title ? title.split('<br>').length : 0;
  const { title: _title, width: _width, height: _height, ...kept } = layout;
  const has_titles_above = (layout.annotations ?? []).some(
    ({ yref, y, yanchor }) => yref === 'paper' && Number(y) >= 1 && yanchor === 'bottom',
  );
  return {
    data: data.map((trace) => printTrace(trace, scale, (name) => lines(name, room), options.entries ?? [])),
    layout: {
      ...kept,
      ...axes,
      width,
      height: Math.round(height_px + n_title * 1.3 * font_px),
      autosize: false,
      paper_bgcolor: '#ffffff',
      plot_bgcolor: '#ffffff',
      font: { family: FAMILY, size: font_px, color: INK },
      showlegend: hasLegend,
      legend: {
        ...(layout.legend?.traceorder && { traceorder: layout.legend.traceorder }),
        ...placeOf(options.legend, font_px),
      },
      // Half of the last tick's label stands beyond the axis.
      margin: { l: 4, r: 2 * font_px, t: (0.8 + 1.3 * (n_title + Number(has_titles_above))) * font_px, b: 4 },
      ...(title && {
        title: {
          text: title,
          font: { size: font_px, color: INK },
          x: 0.5,
          xanchor: 'center' as const,
          xref: 'container' as const,
          y: 1,
          yref: 'container' as const,
          yanchor: 'top' as const,
          // Plotly anchors the last line: the padding makes room for those above it.
          pad: { t: 0.4 * font_px + (n_title - 1) * 1.3 * font_px },
        },
      }),
      annotations: (layout.annotations ?? []).map((annotation): Partial<Annotations> => ({
        ...annotation,
        // One that is longer than the plot, such as that of a published score, would leave the page.
        ...(annotation.text && { text: lines(annotation.text, AXIS_SHARE * width) }),
        font: { ...annotation.font, size: font_px * 0.9 },
      })),
      shapes: (layout.shapes ?? []).map((shape): Partial<Shape> => ({
        ...shape,
        line: { ...shape.line, width: (shape.line?.width ?? LINE_PX) * scale.line },
      })),
    },
  };
}

/** What the chart library knows of an axis that it has drawn. */
type DrawnAxis = {
  _length?: number;
  /** 0: as many as the library likes. */
  nticks?: number;
  tickfont?: { size?: number };
};

/** The chart library draws at least about this many ticks, however short an axis is. */
const LEAST_TICKS = 5;
/** From one tick of a vertical axis to the next, as a multiple of the font's size. */
const TICK_DISTANCE = 1.5;

/** How many ticks each vertical axis has room for, where that is fewer than it has: changes of a drawn layout. */
export function fewerTicks(drawn: object): Record<string, number> {
  const changes: Record<string, number> = {};
  for (const [name, part] of Object.entries(drawn)) {
    if (!/^yaxis\d*$/.test(name)) continue;
    const { _length: length, nticks, tickfont } = part as DrawnAxis;
    if (length === undefined || !tickfont?.size) continue;
    const most = Math.max(1, Math.floor(length / (TICK_DISTANCE * tickfont.size)));
    const present = nticks === undefined || nticks === 0 ? LEAST_TICKS : nticks;
    if (most < present) changes[`${name}.nticks`] = most;
  }
  return changes;
}
