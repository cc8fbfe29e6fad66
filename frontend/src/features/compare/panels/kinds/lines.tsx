import { drawnLines, LinesBody } from '../LinesBody';
import type { PanelKind } from '../kinds';

const MAX_LINES = 10;
const MAX_FORMULA = 200;

export const kind: PanelKind = {
  label: 'Lines',
  order: 10,
  fields: ['metrics', 'formulas', 'x', 'log'],
  size: { columns: 6, height: 260 },
  titleOf: ({ metrics = [], formulas = [] }) => [...metrics, ...formulas].join(', ') || 'Lines',
  refusal: ({ metrics = [], formulas = [] }) => {
    const n = metrics.length + formulas.length;
    if (n === 0) return 'Choose a metric, or write a formula.';
    if (n > MAX_LINES) return `At most ${MAX_LINES} metrics and formulas.`;
    return formulas.some((formula) => formula.length > MAX_FORMULA)
      ? `A formula has at most ${MAX_FORMULA} characters.`
      : undefined;
  },
  sourceOf: (...shown) => ['lines', drawnLines(...shown)],
  Body: LinesBody,
};
