import type { Layout, LayoutAxis } from 'plotly.js';

/** Okabe and Ito's colours, readable by people with any colour vision. */
const LIGHT = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#b88700', '#56b4e9', '#7a6a00', '#333333'];
const DARK = ['#56b4e9', '#e69f00', '#2cc79b', '#e29cc4', '#f0e442', '#5a9fd4', '#e8743b', '#cccccc'];

export type Scheme = 'light' | 'dark';

/** The colour of series `index`, the same on every page. */
export function seriesColour(index: number, scheme: Scheme): string {
  const colours = scheme === 'dark' ? DARK : LIGHT;
  return colours[index % colours.length] ?? colours[0] ?? '#0072b2';
}

const axis = (scheme: Scheme): Partial<LayoutAxis> => ({
  gridcolor: scheme === 'dark' ? '#2a2f35' : '#e6e8ec',
  linecolor: scheme === 'dark' ? '#4a515a' : '#b8bec7',
  zerolinecolor: scheme === 'dark' ? '#3a4048' : '#d0d4da',
  automargin: true,
});

/** A server's layout in the page's type and colours; nothing else of it is changed. */
export function themed(layout: Partial<Layout>, scheme: Scheme): Partial<Layout> {
  const text = scheme === 'dark' ? '#e4e6e9' : '#1b1e23';
  const ground = scheme === 'dark' ? '#22262b' : '#ffffff';
  const result: Partial<Layout> = {
    ...layout,
    paper_bgcolor: 'rgba(0,0,0,0)',
    plot_bgcolor: 'rgba(0,0,0,0)',
    font: { ...layout.font, family: "'Inter Variable', sans-serif", size: 12, color: text },
    hoverlabel: {
      ...layout.hoverlabel,
      bgcolor: ground,
      bordercolor: scheme === 'dark' ? '#4a515a' : '#b8bec7',
      font: { family: "'JetBrains Mono Variable', monospace", size: 12, color: text },
    },
  };
  for (const key of Object.keys(layout).concat('xaxis', 'yaxis')) {
    if (/^[xy]axis\d*$/.test(key)) {
      const name = key as 'xaxis' | 'yaxis';
      result[name] = { ...layout[name], ...axis(scheme) };
    }
  }
  return result;
}
