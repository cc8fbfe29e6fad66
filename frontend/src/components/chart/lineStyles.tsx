import { useComputedColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { paletteQuery } from '@/api/figures';

/** Plotly's dashes as values of `stroke-dasharray`. */
const DASHES: Readonly<Record<string, string>> = { dash: '5 3', dot: '2 2', dashdot: '5 2 1 2' };

export type LineStyle = { colour: string; dash: string | undefined };

type Palette = { light: string[]; dark: string[]; dashes: string[]; run_characters: string };

/** The colour and dash of a style, which the service numbers. */
export function lineStyle(palette: Palette, style: number, scheme: 'light' | 'dark'): LineStyle {
  const colours = palette[scheme];
  const dash = palette.dashes[Math.floor(style / colours.length) % palette.dashes.length] ?? '';
  return { colour: colours[style % colours.length] ?? 'currentColor', dash: DASHES[dash] };
}

/** The style of a run: that of its id's last character, whatever else is shown. */
export const runStyle = ({ run_characters }: Palette, run: string): number =>
  Math.max(0, run_characters.indexOf(run.slice(-1)));

/** The styles of runs and of numbered groups as in the service's figures; undefined until they are loaded. */
export function useLineStyles() {
  const scheme = useComputedColorScheme('light');
  const { data: palette } = useQuery(paletteQuery);
  const ofGroup = (style: number): LineStyle | undefined => palette && lineStyle(palette, style, scheme);
  return {
    ofRun: (run: string): LineStyle | undefined => palette && ofGroup(runStyle(palette, run)),
    ofGroup,
  };
}

/** A short sample of a line's colour and dash. */
export function Swatch({ colour, dash }: Partial<LineStyle>) {
  return (
    <svg width="16" height="4" style={{ flex: 'none' }} aria-hidden="true">
      <path d="M0 2H16" stroke={colour} strokeWidth="3" strokeDasharray={dash} />
    </svg>
  );
}
