import type { Data } from 'plotly.js';
import { expect, it } from 'vitest';
import { fewerTicks, legendEntries, printFigure, wrapped } from './printLayout';

const widthOf = (text: string): number => 10 * Array.from(text).length;

it.each([
  ['ab cd ef', 50, ['ab cd', 'ef']],
  ['abcdefgh', 30, ['abc', 'def', 'gh']],
  ['a bcdefg', 30, ['a', 'bcd', 'efg']],
  ['short', 1000, ['short']],
  ['', 100, ['']],
])('wrapped breaks %j at %d px', (text, room, lines) => {
  expect(wrapped(text, room, widthOf)).toEqual(lines);
});

const trace = { type: 'scatter', name: 'a &lt;run&gt;', line: { width: 2 }, marker: { size: 9 } } as Data;

it('printFigure is white, of the width in inches, and scales lines and fonts', () => {
  const options = { width: 'column', line_width_pt: 0.75, legend: 'below', title: 'x < y' } as const;
  const layout = { title: { text: 'old' }, paper_bgcolor: '#000', xaxis: {}, yaxis2: {} };
  const figure = printFigure({ data: [trace, trace], layout }, options, widthOf);
  expect(figure.layout).toMatchObject({
    width: 312,
    paper_bgcolor: '#ffffff',
    plot_bgcolor: '#ffffff',
    showlegend: true,
    title: { text: 'x &lt; y' },
  });
  expect(figure.data[0]).toMatchObject({
    name: 'a &lt;run&gt;',
    line: { width: 1 },
    marker: { size: 8 },
  });
  expect(figure.layout.xaxis?.tickfont?.size).toBeCloseTo((8 * 96) / 72);
});

it('printFigure of one line has no legend, and without a title no title', () => {
  const options = { width: 'page', line_width_pt: 1, legend: 'below', title: '' } as const;
  const { layout } = printFigure({ data: [trace], layout: { title: { text: 'old' } } }, options, widthOf);
  expect(layout.showlegend).toBe(false);
  expect(layout.title).toBeUndefined();
});

it('printFigure has the legend of one line if the figure wants it, with subscripts as letters', () => {
  const options = { width: 'page', line_width_pt: 1, legend: 'below', title: 'Score by nₑ' } as const;
  const data = [{ ...trace, name: 'nₑ = 8' }];
  const figure = printFigure({ data, layout: { showlegend: true } }, options, widthOf);
  expect(figure.layout.showlegend).toBe(true);
  expect(figure.data[0]).toMatchObject({ name: 'n_e = 8' });
  expect(figure.layout.title).toMatchObject({ text: 'Score by n_e' });
});

it('printFigure keeps the height of panels per size of the font, and room for their titles', () => {
  const options = { width: 'page', line_width_pt: 1, legend: 'none', title: '' } as const;
  const titled = { text: 'Pong', yref: 'paper', y: 1, yanchor: 'bottom' } as const;
  const of = (layout: object) => printFigure({ data: [trace], layout }, options, widthOf).layout;
  const font_px = (8 * 96) / 72;
  expect(of({ height: 600 }).height).toBe(Math.round((600 * font_px) / 12));
  const [above, without] = [of({ annotations: [titled] }), of({})];
  expect((above.margin?.t ?? 0) - (without.margin?.t ?? 0)).toBeCloseTo(1.3 * font_px);
});

it('printFigure has the texts and the order of the edited legend', () => {
  const options = { width: 'page', line_width_pt: 1, legend: 'below', title: '' } as const;
  const data = ['lr 0.1', 'lr 0.1', 'lr &lt; 1'].map((name) => ({ ...trace, name }) as Data);
  const [first, second] = legendEntries(data);
  expect([first?.text, second?.text]).toEqual(['lr 0.1', 'lr < 1']);
  const entries = [second, first && { ...first, text: 'η → 1' }].flatMap((entry) => entry ?? []);
  const { data: drawn } = printFigure({ data, layout: {} }, { ...options, entries }, widthOf);
  expect(drawn).toMatchObject([
    { name: 'η to 1', legendrank: 1 },
    { name: 'η to 1', legendrank: 1 },
    { name: 'lr &lt; 1', legendrank: 0 },
  ]);
});

it('printFigure breaks titles of axes that are longer than these', () => {
  const options = { width: 'column', line_width_pt: 1, legend: 'none', title: '' } as const;
  const title = { text: 'Score (mean of the last 100 returns)' };
  const { layout } = printFigure({ data: [trace], layout: { yaxis: { title } } }, options, widthOf);
  expect(layout.yaxis?.title?.text).toContain('<br>');
});

it('fewerTicks leaves vertical axes as many ticks as they have room for', () => {
  const tickfont = { size: 10 };
  const drawn = {
    xaxis: { _length: 20, tickfont },
    yaxis: { _length: 300, tickfont },
    yaxis2: { _length: 46, nticks: 0, tickfont },
    yaxis3: { _length: 4, tickfont },
    yaxis4: { _length: 100, nticks: 8, tickfont },
    yaxis5: { _length: 30, nticks: 1, tickfont },
    legend: {},
  };
  expect(fewerTicks(drawn)).toEqual({ 'yaxis2.nticks': 3, 'yaxis3.nticks': 1, 'yaxis4.nticks': 6 });
});
