import { useComputedColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useCallback } from 'react';
import { paletteQuery } from '@/api/figures';

/** A colour, and the symbol on the line; empty for none. */
export type LineStyle = { colour: string; symbol: string };

export type Palette = { light: string[]; dark: string[]; names: string[]; symbols: string[] };

/** The colour and symbol of a style, which the service numbers. */
export function lineStyle(palette: Palette, style: number, scheme: 'light' | 'dark'): LineStyle {
  const colours = palette[scheme];
  return {
    colour: colours[style % colours.length] ?? 'currentColor',
    symbol: palette.symbols[Math.floor(style / palette.names.length) % palette.symbols.length] ?? '',
  };
}

/** What a style is called, such as "orange, second shade, square". */
export function styleName({ names, light, symbols }: Palette, style: number): string {
  const shade = style % light.length >= names.length ? ['second shade'] : [];
  const symbol = symbols[Math.floor(style / names.length) % symbols.length] ?? '';
  const name = names[style % names.length] ?? '';
  return [name, ...shade, ...(symbol ? [symbol.replaceAll('-', ' ')] : [])].join(', ');
}

/** The look of a style as in the service's figures; undefined until it is loaded. */
export function useLineStyles(enabled = true): (style: number) => LineStyle | undefined {
  const scheme = useComputedColorScheme('light');
  const { data: palette } = useQuery({ ...paletteQuery, enabled });
  return useCallback((style) => palette && lineStyle(palette, style, scheme), [palette, scheme]);
}

/** Plotly's symbols in a box of 10, by their names. */
const SYMBOLS: Readonly<Record<string, string>> = {
  square: 'M1.5 1.5h7v7h-7z',
  'triangle-up': 'M5 .8L9.4 8.4H.6z',
  'circle-open': 'M5 1.5a3.5 3.5 0 1 0 .01 0z',
  cross: 'M3.5.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z',
  'triangle-down': 'M5 9.2L9.4 1.6H.6z',
  x: 'M2.8.7L5 2.9 7.2.7l2.1 2.1L7.1 5l2.2 2.2-2.1 2.1L5 7.1 2.8 9.3.7 7.2 2.9 5 .7 2.8z',
  star: 'M5 .2l1.2 3.2 3.5.2-2.7 2.2.9 3.4L5 7.3 2.1 9.2 3 5.8.3 3.6l3.5-.2z',
  bowtie: 'M.5 1v8l9-8v8z',
  hourglass: 'M1 .5h8l-8 9h8z',
  // Of events.
  diamond: 'M5 .5L9.5 5 5 9.5.5 5z',
  'triangle-right': 'M1.6.6L9.2 5 1.6 9.4z',
  'line-ns-open': 'M5 .5v9',
};

/** A symbol around a point of an SVG. */
export function SymbolMark({ colour, symbol, x, y }: LineStyle & { x: number; y: number }) {
  const path = SYMBOLS[symbol];
  if (path === undefined) return null;
  const open = symbol.endsWith('-open');
  return (
    <path
      d={path}
      transform={`translate(${x - 5} ${y - 5})`}
      fill={open ? 'var(--panel)' : colour}
      stroke={open ? colour : 'none'}
      strokeWidth="2"
    />
  );
}

/** A short sample of a line, or of marks without one. */
export function Swatch({
  colour = 'currentColor',
  symbol = '',
  hasLine = true,
}: Partial<LineStyle> & { hasLine?: boolean }) {
  return (
    <svg width="16" height="10" style={{ flex: 'none' }} aria-hidden="true">
      {hasLine && <path d="M0 5H16" stroke={colour} strokeWidth={symbol ? 2 : 3} />}
      <SymbolMark colour={colour} symbol={symbol} x={8} y={5} />
    </svg>
  );
}
