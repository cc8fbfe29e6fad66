import { lazy, Suspense, useState } from 'react';
import { inTab, MAX_PANELS, type Panel, tabsOf } from '@/components/run/panels';
import type { PanelPage } from './kinds';
import type { MetricProps } from './metricPanel';
import { PanelGrid } from './PanelGrid';
import { PanelTabs } from './PanelTabs';

const PanelDialog = lazy(async () => ({ default: (await import('./parts')).PanelDialog }));
const TabDialog = lazy(async () => ({ default: (await import('./parts')).TabDialog }));

type Props = MetricProps & {
  page: PanelPage;
  panels: readonly Panel[];
  /** Receives the panels, and the tab to open: empty for the first; without one, the open one stays. */
  onPanels: (panels: readonly Panel[], tab?: string) => void;
  tab: string | undefined;
  onTab: (tab: string | undefined) => void;
  /** The kind of a panel to add. */
  added: string | undefined;
  /** It was added, or not wanted. */
  onAdded: () => void;
};

type Naming = { panel: number } | 'new' | 'rename';

/** The panels with their tabs, and the dialogs that change them. */
export function PanelEditor({ page, panels, onPanels, tab, onTab, added, onAdded, ...metrics }: Props) {
  const [edited, setEdited] = useState<{ panel: Panel; at: number }>();
  const [naming, setNaming] = useState<Naming>();
  const named = tabsOf(panels);
  /** A tab that is open may have no panels yet. */
  const tabs = tab === undefined || named.includes(tab) ? named : [...named, tab];
  const asked = edited?.panel ?? (added === undefined ? undefined : inTab({ kind: added }, tab));
  const close = (): void => {
    setEdited(undefined);
    onAdded();
  };
  const save = (panel: Panel): void => {
    const next = edited ? panels.with(edited.at, panel) : [...panels, panel].slice(-MAX_PANELS);
    onPanels(next, panel.tab ?? '');
  };
  const name = (to: string): void => {
    if (naming === 'new') onTab(to);
    else if (naming === 'rename')
      onPanels(
        panels.map((panel) => (panel.tab === tab ? inTab(panel, to) : panel)),
        to,
      );
    else if (naming !== undefined)
      onPanels(
        panels.map((panel, at) => (at === naming.panel ? inTab(panel, to) : panel)),
        to,
      );
  };
  return (
    <>
      {tabs.length > 0 && (
        <PanelTabs
          tabs={tabs}
          current={tab}
          onTab={onTab}
          onNew={() => setNaming('new')}
          onRename={() => setNaming('rename')}
          onRemove={() =>
            onPanels(
              panels.map((panel) => (panel.tab === tab ? inTab(panel, undefined) : panel)),
              '',
            )
          }
        />
      )}
      <PanelGrid
        {...metrics}
        page={page}
        panels={panels}
        onPanels={onPanels}
        tab={tab}
        onEdit={(panel, at) => setEdited({ panel, at })}
        onNewTab={(panel) => setNaming({ panel })}
      />
      <Suspense fallback={null}>
        {asked && (
          <PanelDialog
            key={asked.kind}
            panel={asked}
            isNew={edited === undefined}
            page={page}
            tabs={tabs}
            onClose={close}
            onSave={save}
          />
        )}
        {naming !== undefined && (
          <TabDialog
            title={naming === 'rename' ? 'Rename tab' : 'New tab'}
            name={naming === 'rename' ? (tab ?? '') : ''}
            taken={tabs.filter((other) => other !== tab)}
            onClose={() => setNaming(undefined)}
            onName={name}
          />
        )}
      </Suspense>
    </>
  );
}
