import { Link } from '@tanstack/react-router';
import type { Environment } from '@/api/catalog';
import { ButtonLink } from '@/components/links';
import { DASH, formatScore } from '@/lib/format';

/** A published score by its label, with where it is from on hover. */
function Published({ world, label }: { world: Environment; label: string }) {
  const found = world.published.find((each) => each.label === label);
  return (
    <td className="right num" title={found && `${found.source}; ${found.protocol.replaceAll('_', ' ')}`}>
      {found ? formatScore(found.score) : DASH}
    </td>
  );
}

/** Every world, with what others reached there. */
export function WorldsTable({ worlds }: { worlds: readonly Environment[] }) {
  const labels = [...new Set(worlds.flatMap(({ published }) => published.map(({ label }) => label)))];
  return (
    <div className="panel" style={{ overflowX: 'auto' }}>
      <table className="grid">
        <thead>
          <tr>
            <th>World</th>
            <th>Id</th>
            <th>Observations</th>
            <th className="right">Frames a step</th>
            <th>Evaluated by</th>
            {labels.map((label) => (
              <th key={label} className="right">
                {label}
              </th>
            ))}
            <th>
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {worlds.map((world) => (
            <tr key={world.id}>
              <td title={world.summary}>{world.title}</td>
              <td className="num">{world.id}</td>
              <td>{world.observation}</td>
              <td className="right num">{world.frames_per_agent_step}</td>
              <td className="nowrap">{world.evaluation_protocol.replaceAll('_', ' ')}</td>
              {labels.map((label) => (
                <Published key={label} world={world} label={label} />
              ))}
              <td className="right nowrap">
                <Link to="/" search={{ q: `environment="${world.id}"` }}>
                  runs
                </Link>{' '}
                <ButtonLink size="compact-xs" variant="default" to="/new" search={{ environment: world.id }}>
                  New run
                </ButtonLink>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
