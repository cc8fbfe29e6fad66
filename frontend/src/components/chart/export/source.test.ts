import { expect, it, vi } from 'vitest';
import { NO_SMOOTHING } from '@/api/series';
import { curveSource, sourceAt } from './source';

const asked: URL[] = [];

vi.hoisted(() => {
  globalThis.fetch = (request) => {
    asked.push(new URL((request as Request).url));
    return Promise.resolve(new Response('a caption'));
  };
});

const REQUEST = {
  runs: ['A', 'B', 'C'],
  metrics: ['loss/value'],
  metric: 'loss/value',
  theme: 'light' as const,
  axes: { x: 'frames' as const, smoothing: NO_SMOOTHING, zoom: [-5, 10] as const, points: 500 },
};
const NAMED = { name: 'loss', title: 'Value loss' };

it('an exported curve has the runs, the range and the styles that are shown', async () => {
  const shown = { hidden: new Set(['B']), log: false, hasBands: false };
  await curveSource(NAMED, { ...REQUEST, environment: 'CartPole-v1', styles: { style: [4, 5] } }, shown).file(
    'caption',
    {
      width_in: 3.25,
    },
  );
  const url = asked.at(-1);
  expect(url?.pathname).toBe('/api/v1/figures/curve');
  expect(url?.searchParams.getAll('run')).toEqual(['A', 'C']);
  expect(url?.searchParams.getAll('style')).toEqual(['4', '2']);
  expect(Object.fromEntries(url?.searchParams ?? [])).toMatchObject({
    metric: 'loss/value',
    environment: 'CartPole-v1',
    x: 'frames',
    x_from: '0',
    x_to: '10',
    format: 'caption',
    width_in: '3.25',
  });
});

it('an exported curve of fewer runs has no band of a single run', async () => {
  const smoothing = { kind: 'window', weight: 0.9, scale: null } as const;
  const shown = { hidden: new Set(['A']), log: false, hasBands: false };
  const request = { ...REQUEST, runs: ['A', 'B'], axes: { ...REQUEST.axes, smoothing } };
  await curveSource(NAMED, request, shown).file('csv', {});
  expect(Object.fromEntries(asked.at(-1)?.searchParams ?? [])).toMatchObject({
    run: 'B',
    smoothing: 'window',
    band: 'none',
  });
});

it('a figure is asked for by its address', async () => {
  const file = await sourceAt(NAMED, '/api/v1/sweeps/1/scatter', { setting: 'a' }).file('csv', {});
  expect(await file.text()).toBe('a caption');
  expect(asked.at(-1)?.pathname).toBe('/api/v1/sweeps/1/scatter');
});
