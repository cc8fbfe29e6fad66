import { type ReactNode, useMemo, useRef, useState, useEffect } from 'react';
import { type Counting, stepsTitle } from '@/lib/run';
import {
  changed,
  type CurveSearch,
  CurveViewContext,
  type Place,
  Pointed,
  searchOf,
  viewOf,
} from './curveView';
import type { StyleParameters } from '@/api/figures';

type Search = { [K in keyof CurveSearch]?: CurveSearch[K] | undefined };

type Props = {
  /** The page's search parameters. */
  search: Search;
  onSearch: (to: Search) => void;
  styles?: StyleParameters | undefined;
  /** Runs or groups with wider lines. */
  bold?: ReadonlySet<string> | undefined;
  /** The runs of its charts, some of which may count iterations. */
  runs?: readonly Counting[];
  children: ReactNode;
};

/** Keeps the view of all charts inside it in the page's address. */
export function CurveViewProvider({ search, onSearch, styles, bold, runs = [], children }: Props) {
  const [crosshair] = useState(() => new Pointed<Place>());
  const [series] = useState(() => new Pointed<string>());
  const latest = useRef(onSearch);
  useEffect(() => {
    latest.current = onSearch;
  }, [onSearch]);
  const steps = stepsTitle(runs);
  const { x, smooth, smoothing, scale, zoom, log } = search;
  const state = useMemo(() => {
    const view = viewOf({ x, smooth, smoothing, scale, zoom, log });
    return {
      view,
      change: (to: Parameters<typeof changed>[1]) => latest.current(searchOf(changed(view, to))),
      crosshair,
      series,
      styles,
      bold,
      steps,
    };
  }, [x, smooth, smoothing, scale, zoom, log, crosshair, series, styles, bold, steps]);
  return <CurveViewContext value={state}>{children}</CurveViewContext>;
}
