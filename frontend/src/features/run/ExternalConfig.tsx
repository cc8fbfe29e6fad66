import type { Run } from '@/api/runs';
import { Empty } from '@/components/feedback';
import { ScrollPanel } from '@/components/ScrollPanel';
import { formatValue } from '@/lib/format';
import { seedOf } from '@/lib/run';
import classes from './run.module.css';

const shown = (value: unknown): string =>
  Array.isArray(value) ? `[${value.map(formatValue).join(', ')}]` : formatValue(value);

/** The config of an external run, as its script has sent it. */
export function ExternalConfig({ run }: { run: Run }) {
  const settings = Object.entries((run.spec.config ?? {}) as Record<string, unknown>);
  const seed = seedOf(run);
  if (settings.length === 0) return <Empty>Its script has sent no config.</Empty>;
  return (
    <>
      <p className="muted">As sent by its script. Only the script can change it.</p>
      <ScrollPanel label="Config" className={classes.config}>
        <table className="grid">
          <thead>
            <tr>
              <th>Hyperparameter</th>
              <th className="right">Value</th>
            </tr>
          </thead>
          <tbody>
            {[...(seed === undefined ? [] : [['seed', seed] as const]), ...settings].map(([name, value]) => (
              <tr key={name}>
                <td className="num">{name}</td>
                <td className="right num">{shown(value)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollPanel>
    </>
  );
}
