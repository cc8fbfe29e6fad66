import { ScrollPanel } from '@/components/ScrollPanel';
import { DASH } from '@/lib/format';
import { differs, provenanceRows, type Attempt } from './provenance';
import classes from './run.module.css';

/** What each attempt was trained with: code, packages and machine. */
export function ProvenanceTable({ attempts }: { attempts: readonly Attempt[] }) {
  const rows = provenanceRows(attempts);
  if (rows.length === 0) return null;
  return (
    <section aria-label="Provenance">
      <h3 className="section-title" style={{ margin: '16px 0 8px' }}>
        Provenance
      </h3>
      <ScrollPanel label="Provenance of each attempt">
        <table className="grid">
          <thead>
            <tr>
              <th>Attempt</th>
              {attempts.map(({ number, host }) => (
                <th key={number}>
                  {number} on {host}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ title, hint, values }) => (
              <tr key={title} title={hint}>
                <td className="nowrap">{title}</td>
                {attempts.map(({ number }, k) => (
                  <td
                    key={number}
                    className={`num ${classes.provenance}`}
                    style={differs(values, k) ? { color: 'var(--accent)', fontWeight: 600 } : undefined}
                  >
                    {values[k] ?? DASH}
                    {differs(values, k) && <span className="visually-hidden"> (changed)</span>}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollPanel>
    </section>
  );
}
