import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { useEffect, useState } from 'react';
import { afterEach, expect, it, vi } from 'vitest';
import { CurveViewProvider } from '@/components/chart/CurveViewProvider';
import type { Panel } from '@/components/run/panels';
import type { PanelPage } from './kinds';
import { PanelEditor } from './PanelEditor';

vi.hoisted(() => {
  globalThis.fetch = () => new Promise(() => undefined);
});

afterEach(cleanup);

const PAGE: PanelPage = {
  rows: [],
  grouped: false,
  runs: [],
  visible: [],
  compared: [],
  environments: [],
  hidden: new Set(),
  notDrawn: new Set(),
  onHidden: () => undefined,
  spread: { centre: 'mean', interval: 'se', seeds: false },
  styles: new Map(),
  groupStyles: [],
  verdict: { score: 'training', at: 'common', protocol: undefined },
  titles: new Map(),
};

const note = (text: string, tab?: string): Panel => ({
  kind: 'text',
  title: text,
  text,
  ...(tab ? { tab } : {}),
});

/** The panels of a page, which its own state replaces. */
let shown: readonly Panel[] = [];

function Page({ initial, added }: { initial: readonly Panel[]; added?: string | undefined }) {
  const [panels, setPanels] = useState(initial);
  const [tab, setTab] = useState<string>();
  useEffect(() => {
    shown = panels;
  }, [panels]);
  return (
    <PanelEditor
      page={PAGE}
      panels={panels}
      onPanels={(to, opened) => {
        setPanels(to);
        if (opened !== undefined) setTab(opened || undefined);
      }}
      tab={tab}
      onTab={setTab}
      added={added}
      onAdded={() => undefined}
      runs={[]}
      environments={[]}
      learningCurve={{ scoredBy: '' }}
      spread={undefined}
      marks={undefined}
      hidden={new Set()}
    />
  );
}

const show = (initial: readonly Panel[], added?: string) =>
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <CurveViewProvider search={{}} onSearch={() => undefined}>
          <Page initial={initial} added={added} />
        </CurveViewProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );

const titles = () => screen.getAllByRole('heading', { level: 2 }).map(({ textContent }) => textContent);
const choose = async (panel: string, item: string): Promise<void> => {
  const [options] = await screen.findAllByRole('button', { name: `Options for ${panel}` });
  if (options) fireEvent.click(options);
  fireEvent.click(await screen.findByRole('menuitem', { name: item }));
};
const name = async (text: string): Promise<void> => {
  fireEvent.change(await screen.findByRole('textbox', { name: 'Name' }), { target: { value: text } });
  fireEvent.click(screen.getByRole('button', { name: 'Save' }));
};

it('a panel is duplicated, and moved to a new tab, which opens; the tab is renamed and removed', async () => {
  show([note('a')]);
  expect(await screen.findByRole('heading', { name: 'a' })).toBeTruthy();
  expect(screen.queryByRole('tablist')).toBeNull();
  await choose('a', 'Duplicate');
  expect(shown).toEqual([note('a'), note('a')]);
  await choose('a', 'Remove');
  await choose('a', 'Move to a new tab…');
  await name('Notes');
  await vi.waitFor(() => expect(shown).toEqual([note('a', 'Notes')]));
  expect((await screen.findByRole('tab', { name: 'Notes' })).getAttribute('aria-selected')).toBe('true');

  fireEvent.click(screen.getByRole('button', { name: 'Options for the tab Notes' }));
  fireEvent.click(await screen.findByRole('menuitem', { name: 'Rename…' }));
  await name('Texts');
  await vi.waitFor(() => expect(shown).toEqual([note('a', 'Texts')]));
  fireEvent.click(await screen.findByRole('button', { name: 'Options for the tab Texts' }));
  fireEvent.click(await screen.findByRole('menuitem', { name: /^Remove/ }));
  expect(shown).toEqual([note('a')]);
});

it('the arrow keys move a panel within its tab', async () => {
  show([note('a'), note('hidden', 'Other'), note('b'), note('c')]);
  fireEvent.keyDown(await screen.findByRole('button', { name: 'Move a' }), { key: 'ArrowRight' });
  expect(shown.map(({ title }) => title)).toEqual(['b', 'hidden', 'a', 'c']);
  expect(titles()).toEqual(['b', 'a', 'c']);
  fireEvent.keyDown(screen.getByRole('button', { name: /^Resize a/ }), { key: 'ArrowRight' });
  expect(shown[2]).toEqual({ ...note('a'), columns: 6, height_px: 228 });
});

it('a panel is added when it says what it shows, in the size of its kind', async () => {
  show([], 'text');
  const add = await screen.findByRole('button', { name: 'Add' });
  fireEvent.click(add);
  expect(shown).toEqual([]);
  fireEvent.change(screen.getByRole('textbox', { name: 'Text' }), { target: { value: 'noted' } });
  fireEvent.click(add);
  await vi.waitFor(() =>
    expect(shown).toEqual([{ kind: 'text', text: 'noted', columns: 4, height_px: 228 }]),
  );
});

it('a panel of an unknown kind says so, and keeps its menu', async () => {
  show([{ kind: 'hologram' }]);
  expect(await screen.findByText('This Callboard does not know this kind of panel.')).toBeTruthy();
  await choose('hologram', 'Remove');
  expect(shown).toEqual([]);
});
