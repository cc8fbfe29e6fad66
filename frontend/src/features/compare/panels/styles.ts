import { useMemo } from 'react';
import type { StyleParameters } from '@/api/figures';
import { useCurveView } from '@/components/chart/curveView';
import { styleParameters } from '@/components/chart/seriesStyles';
import type { PanelPage } from './kinds';

/** The styles of the visible runs, in their order, or of all groups. */
export function useVisibleStyles({ visible, grouped, styles }: PanelPage): StyleParameters | undefined {
  const { styles: ofGroups } = useCurveView();
  const ofRuns = useMemo(
    () => styleParameters(new Map(visible.map(({ id }) => [id, styles.get(id) ?? 0]))),
    [visible, styles],
  );
  return grouped ? ofGroups : ofRuns;
}
