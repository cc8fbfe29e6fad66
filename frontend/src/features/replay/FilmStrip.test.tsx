import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { isAffected } from '@/api/liveUpdates';
import { spreadEpisodesQuery, spreadVideosQuery, videosQuery } from '@/api/runResources';
import { CurveViewProvider } from '@/components/chart/CurveViewProvider';
import { FilmStrip } from './FilmStrip';
import { thumbnailQuery } from './thumbnail';

vi.hoisted(() => {
  globalThis.fetch = () => new Promise(() => undefined);
});

afterEach(cleanup);

/** A drawn chart from 0 to 1,000 agent steps, 500 px wide: room for six thumbnails. */
function drawnChart(): HTMLElement {
  const section = document.createElement('section');
  const plot = document.createElement('div');
  plot.className = 'js-plotly-plot';
  const xaxis = { _offset: 50, _length: 500, range: [0, 1000] };
  section.append(Object.assign(plot, { on: vi.fn(), removeListener: vi.fn(), _fullLayout: { xaxis } }));
  return section;
}

function show(of: 'episodes' | 'videos', sent: object[], chart = drawnChart()) {
  const onSelect = vi.fn();
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(spreadEpisodesQuery('R', 6, null).queryKey, [
    { id: 'E', kind: 'training', agent_steps: 250, frames: 1000, wall_time_s: 1, episode_return: 21 },
  ] as never);
  client.setQueryData(spreadVideosQuery('R', 6, null).queryKey, sent as never);
  client.setQueryData(videosQuery('R').queryKey, {
    pages: [{ items: sent as never, next_cursor: null }],
    pageParams: [null],
  });
  client.setQueryData(thumbnailQuery('videos', 'V', 0).queryKey, { url: 'data:image/jpeg;base64,' });
  const { container } = render(
    <QueryClientProvider client={client}>
      <MantineProvider env="test">
        <CurveViewProvider search={{}} onSearch={() => undefined}>
          <FilmStrip run="R" of={of} step="iteration" chart={chart} selected="V" onSelect={onSelect} />
        </CurveViewProvider>
      </MantineProvider>
    </QueryClientProvider>,
  );
  return { onSelect, container };
}

it('an episode stands at its step, with its return', () => {
  const { onSelect } = show('episodes', []);
  const frame = screen.getByRole('button', {
    name: 'Play 250 · 21.0: Episode at agent step 250, return 21.0',
  });
  // Its middle: 50 + 500 / 4.
  expect(parseFloat(frame.style.left) + parseFloat(frame.style.width) / 2).toBe(175);
  expect(frame.textContent).toBe('250 · 21.0');
  fireEvent.click(frame);
  expect(onSelect).toHaveBeenCalledWith('E');
});

it('a sent video stands at its step, and a click selects it', () => {
  const { onSelect, container } = show('videos', [
    { id: 'V', state: 'done', agent_steps: 500, wall_time_s: 9 },
  ]);
  const frame = screen.getByRole('button', { name: 'Play 500: Video at iteration 500' });
  expect(parseFloat(frame.style.left) + parseFloat(frame.style.width) / 2).toBe(300);
  expect(frame.getAttribute('aria-pressed')).toBe('true');
  expect(container.querySelector('img')).toBeTruthy();
  fireEvent.click(frame);
  expect(onSelect).toHaveBeenCalledWith('V');
});

it('the last thumbnail stands inside the panel', () => {
  const chart = Object.defineProperty(drawnChart(), 'clientWidth', { value: 560 });
  show('videos', [{ id: 'V', state: 'done', agent_steps: 1000, wall_time_s: 9 }], chart);
  const { left, width } = screen.getByRole('button', { name: /at iteration 1,000/ }).style;
  expect(parseFloat(left) + parseFloat(width)).toBe(560);
});

it('is absent where no video can be watched', () => {
  const { container } = show('videos', [{ id: 'V', state: 'queued', agent_steps: 500, wall_time_s: 9 }]);
  expect(container.querySelector('[role=group]')).toBeNull();
});

it('a thumbnail is asked for again when its own job has ended, and after nothing else', () => {
  const job = {
    kind: 'job',
    id: 'J',
    parents: { run: 'R' },
    state: 'running',
    changed: ['state', 'thumbnail'],
  };
  const ended = { ...job, state: 'failed', changed: [...job.changed, 'result'] };
  const follows = (data: object | undefined, event: typeof job) =>
    thumbnailQuery('episodes', 'E', 0)
      .meta?.dependsOn?.(data)
      .some((key) => isAffected(key, event));
  expect(follows({ job: 'J' }, ended)).toBe(true);
  expect(follows({ job: 'J' }, job)).toBe(false);
  expect(follows({ job: 'another' }, ended)).toBe(false);
  expect(follows({ url: 'data:' }, ended)).toBe(false);
  expect(follows(undefined, ended)).toBe(false);
});
