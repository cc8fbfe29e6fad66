import type { StudyTable } from '@/api/studies';
import { ScrollPanel } from '@/components/ScrollPanel';
import { DASH, formatNumber } from '@/lib/format';
import classes from './papers.module.css';

type Cell = StudyTable['rows'][number]['cells'][number];

/** A table of a study: published columns are labelled so, and each head names protocol and rule. */
export function StudyTableView({ table, label }: { table: StudyTable; label: string }) {
  const [first, ...columns] = table.columns;
  return (
    <ScrollPanel label={label}>
      <table className="grid">
        <thead>
          <tr>
            <th scope="col">{first?.title}</th>
            {columns.map(({ title, how, source, unit }) => (
              <th key={`${source} ${title} ${how}`} scope="col" className="right">
                {title}
                {unit && unit !== 'score' ? ` (${unit})` : ''}
                <span className={classes.how}>{source === 'published' ? `published, ${how}` : how}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {[...table.rows, ...table.foot].map((row, at) => (
            <tr key={row.label} style={at >= table.rows.length ? { fontWeight: 600 } : undefined}>
              <th scope="row">{row.label}</th>
              {row.cells.map((cell, column) => (
                <td
                  key={`${columns[column]?.title ?? ''} ${column}`}
                  className={`right num ${columns[column]?.source === 'published' ? classes.published : ''}`}
                  title={detailOf(cell)}
                >
                  {cell.value === null ? DASH : formatNumber(cell.value)}
                  {isPartial(cell) && (
                    <span className={classes.how}>{`${cell.n} of ${cell.planned} runs`}</span>
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollPanel>
  );
}

/** Whether runs of a value are missing. */
const isPartial = ({ value, n, planned }: Cell): boolean =>
  value !== null && n !== null && planned !== null && n < planned;

/** The runs of a value, and its interval. */
function detailOf({ n, planned, low, high }: Cell): string | undefined {
  if (n === null) return undefined;
  const interval =
    low === null || high === null ? '' : `, 95 % CI ${formatNumber(low)} to ${formatNumber(high)}`;
  return `${n}${planned === null ? '' : ` of ${planned}`} runs${interval}`;
}
