import { useQuery } from '@tanstack/react-query';
import { configChangesQuery, type ConfigChange } from '@/api/runResources';
import { RelativeTime } from '@/components/text';
import { formatCount, formatValue } from '@/lib/format';

const STATE: Record<ConfigChange['state'], string> = {
  asked: 'pending',
  applied: 'applied',
  refused: 'rejected',
};

/** The changes made to the config during training. */
export function ConfigChanges({ run }: { run: string }) {
  const { data } = useQuery(configChangesQuery(run));
  if (!data || data.length === 0) return null;
  return (
    <section style={{ marginBottom: 16 }}>
      <h3 className="section-title">Changed during training</h3>
      <ul style={{ margin: '4px 0 0', paddingLeft: 20 }}>
        {data.map((change) => (
          <li key={change.version}>
            <span className="num">
              {Object.entries(change.changes)
                .map(([key, value]) => `${key} = ${formatValue(value)}`)
                .join(', ')}
            </span>{' '}
            <span className="muted">
              {STATE[change.state]}
              {change.agent_steps !== null && ` at agent step ${formatCount(change.agent_steps)}`}
              {change.refused && `: ${change.refused}`}, requested <RelativeTime at={change.requested_at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
