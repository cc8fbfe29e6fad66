import type { Data, PlotData } from 'plotly.js';
import type { GroupCurve } from '@/api/series';

/** `#0072b2` at an opacity, as plotly wants it for a filled band. */
function faint(colour: string, opacity: number): string {
  const channel = (from: number): number => parseInt(colour.slice(from, from + 2), 16);
  return `rgba(${channel(1)},${channel(3)},${channel(5)},${opacity})`;
}

export function groupName(group: GroupCurve): string {
  return `${group.group ?? `${group.algorithm} ${group.environment}`}, mean of ${group.runs.length} seeds`;
}

/** The mean of a group of seeds with its band. */
export function groupTraces(group: GroupCurve, colour: string): Data[] {
  const edge: Partial<PlotData> = {
    type: 'scatter',
    mode: 'lines',
    x: group.x,
    line: { width: 0, color: faint(colour, 0) },
    hoverinfo: 'skip',
    showlegend: false,
    legendgroup: group.id,
  };
  return [
    { ...edge, y: group.low as number[] },
    { ...edge, y: group.high as number[], fill: 'tonexty', fillcolor: faint(colour, 0.18) },
    {
      type: 'scatter',
      mode: 'lines',
      name: `${groupName(group)} (${group.interval})`,
      legendgroup: group.id,
      x: group.x as number[],
      y: group.mean as number[],
      text: group.n.map((n) => `${n} runs`),
      line: { width: 2, color: colour },
      hovertemplate: '%{y:.5~g} (%{text})',
    },
  ];
}
