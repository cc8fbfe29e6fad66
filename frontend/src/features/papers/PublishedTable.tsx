import type { StudyDetail } from '@/api/studies';
import { ScrollPanel } from '@/components/ScrollPanel';
import classes from './papers.module.css';

type Table = NonNullable<StudyDetail['items'][number]['published']>;

/** The paper's values, as it prints them. */
export function PublishedTable({ table, label }: { table: Table; label: string }) {
  const [first, ...columns] = table.columns;
  return (
    <div className={classes.printed}>
      <ScrollPanel label={label}>
        <table className="grid">
          <thead>
            <tr>
              <th scope="col">{first}</th>
              {columns.map((column) => (
                <th key={column} scope="col" className="right">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {table.rows.map(([name, ...cells], row) => (
              <tr key={row}>
                <th scope="row">{name}</th>
                {cells.map((cell, at) => (
                  <td key={at} className={`right num ${classes.published}`}>
                    {cell}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollPanel>
      <p>Published, {table.source}.</p>
    </div>
  );
}
