/** The kinds of panels, each a file in `kinds` whose name is the kind's in the document of a view. */
import type { ComponentType } from 'react';
import type { ComparisonRequest } from '@/api/comparisons';
import type { Run } from '@/api/runs';
import type { Spread } from '@/api/series';
import type { CurveViewState } from '@/components/chart/curveView';
import type { PanelSize } from '@/components/chart/panelSize';
import type { Styles } from '@/components/chart/seriesStyles';
import type { Panel } from '@/components/run/panels';
import type { Row } from '../rows';

/** What panels show: the runs or configs of the page. */
export type PanelPage = {
  /** All runs, or all configs over seeds. */
  rows: readonly Row[];
  grouped: boolean;
  /** Ids of all runs, in the order of their styles. */
  runs: readonly string[];
  /** The runs that are drawn. */
  visible: readonly Run[];
  /** All runs of the configs of which anything is drawn. */
  compared: readonly Run[];
  /** Of the runs that are drawn. */
  environments: readonly string[];
  /** Rows that are not drawn. */
  hidden: ReadonlySet<string>;
  /** Runs and groups that are not drawn. */
  notDrawn: ReadonlySet<string>;
  onHidden: (hidden: readonly string[]) => void;
  /** What of several seeds is drawn. */
  spread: Spread;
  /** The styles of the rows. */
  styles: Styles;
  /** The styles of groups, as parameters of figures. */
  groupStyles: readonly string[];
  /** What the verdict compares. */
  verdict: Pick<ComparisonRequest, 'score' | 'at' | 'protocol'>;
  /** The titles of the settings by path. */
  titles: ReadonlyMap<string, string>;
};

export type BodyProps = { panel: Panel; title: string; page: PanelPage; height: number };

/** The kind of a figure of the service, which is the end of its path, and its parameters. */
export type ServedPath = readonly ['lines' | 'scatter' | 'scores', Record<string, unknown>];

/** What a person chooses for a panel. */
export type Field = 'metrics' | 'formulas' | 'x' | 'log' | 'setting' | 'settings' | 'score' | 'text';

export type PanelKind = {
  /** What the menu that adds panels calls it. */
  label: string;
  /** Its place in that menu. */
  order: number;
  fields: readonly Field[];
  /** The most `settings`. */
  maxSettings?: number;
  size: PanelSize;
  /** Its title, unless a person gave it one. */
  titleOf: (panel: Panel, titles: ReadonlyMap<string, string>) => string;
  /** Why it cannot be shown as it is; undefined if it can. */
  refusal?: (panel: Panel) => string | undefined;
  /** What of it can be exported, in the styles and as zoomed on the page. */
  sourceOf?: (panel: Panel, page: PanelPage, curves: Pick<CurveViewState, 'view' | 'styles'>) => ServedPath;
  Body: ComponentType<BodyProps>;
};

const modules = import.meta.glob<PanelKind>('./kinds/*.tsx', { eager: true, import: 'kind' });

/** The kinds by name, in the order of the menu. */
export const KINDS: ReadonlyMap<string, PanelKind> = new Map(
  Object.entries(modules)
    .map(([file, kind]) => [file.replace(/^.*\/|\.tsx$/g, ''), kind] as const)
    .toSorted(([, a], [, b]) => a.order - b.order),
);
