import type { ScoresFigure } from '@/api/panelFigures';
import { Empty } from '@/components/feedback';
import { formatScore } from '@/lib/format';
import classes from './panels.module.css';

type Cells = {
  type?: string;
  x?: ArrayLike<unknown>;
  y?: ArrayLike<unknown>;
  z?: ArrayLike<ArrayLike<number | null>>;
  text?: readonly (readonly string[])[];
};

/** What stands below the number of a cell: the second line of its text, such as its number of seeds. */
const noteOf = (text = ''): string => text.split('<br>').slice(1).join(' ');

type Props = { figure: ScoresFigure; title: string; height: number; x: string; y: string };

/** A heat map as a table, whose cells have their numbers. */
export function Heatmap({ figure, title, height, x, y }: Props) {
  const map = (figure.data as readonly Cells[]).find(({ type }) => type === 'heatmap');
  const columns = Array.from(map?.x ?? []);
  const rows = Array.from(map?.y ?? []);
  const values = rows.map((_, row) => Array.from(map?.z?.[row] ?? []));
  const numbers = values.flat().filter((value) => value !== null && Number.isFinite(value)) as number[];
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  if (numbers.length === 0) return <Empty>No config with both settings has a score yet.</Empty>;
  const shareOf = (value: number): number => (high > low ? (value - low) / (high - low) : 0.5);
  return (
    <div className={classes.scroll} style={{ height }} role="region" aria-label={title} tabIndex={0}>
      <table className={classes.heatmap}>
        <thead>
          <tr>
            <th scope="col">
              {y} <span aria-hidden="true">╲</span> {x}
            </th>
            {columns.map((column, at) => (
              <th key={at} scope="col" className="num">
                {String(column)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              <th scope="row" className="num">
                {String(row)}
              </th>
              {columns.map((_, column) => {
                const value = values[at]?.[column];
                const isKnown = value !== null && value !== undefined && Number.isFinite(value);
                return (
                  <td
                    key={column}
                    className="num"
                    style={
                      isKnown
                        ? ({ '--share': `${Math.round(8 + 36 * shareOf(value))}%` } as React.CSSProperties)
                        : {}
                    }
                  >
                    {isKnown ? formatScore(value) : ''}
                    {isKnown && <small>{noteOf(map?.text?.[at]?.[column])}</small>}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
