import { Link } from '@tanstack/react-router';
import { ScrollPanel } from '@/components/ScrollPanel';
import type { Environment } from '@/api/catalog';
import { ButtonLink } from '@/components/links';
import { DASH, formatScore, plural } from '@/lib/format';
import { pictureOf } from '@/components/world/pictures';

type Score = Environment['published'][number];

const words = (protocol: string): string => protocol.replaceAll('_', ' ');

const told = ({ label, score, protocol, source }: Score): string =>
  `${label} ${formatScore(score)}: ${source}; ${words(protocol)}`;

/** A score published for the protocol by which we score, with where it is from on hover. */
function Published({ world, label }: { world: Environment; label: string }) {
  const found = scoredAlike(world).find((each) => each.label === label);
  return (
    <td className="right num" title={found && told(found)}>
      {found ? formatScore(found.score) : DASH}
    </td>
  );
}

const scoredAlike = ({ published, evaluation_protocol }: Environment): Score[] =>
  published.filter(({ protocol }) => protocol === evaluation_protocol);

/** How many scores there are by other protocols, which are not to be compared; all of them on hover. */
function Otherwise({ world }: { world: Environment }) {
  const alike = scoredAlike(world);
  const others = world.published.filter((each) => !alike.includes(each));
  return (
    <td className="right num" title={others.map(told).join('\n') || undefined}>
      {others.length || DASH}
    </td>
  );
}

function Picture({ id }: { id: string }) {
  const src = pictureOf(id);
  return <td>{src && <img src={src} alt="" loading="lazy" height={48} style={{ display: 'block' }} />}</td>;
}

const acts = ({ actions, action_names }: Environment): string =>
  actions === 'discrete' ? plural(action_names.length, 'action') : plural(action_names.length, 'number');

/** Every world: what it looks like, what one sees and does there, and what others reached. */
export function WorldsTable({ worlds }: { worlds: readonly Environment[] }) {
  const labels = [...new Set(worlds.flatMap((world) => scoredAlike(world).map(({ label }) => label)))];
  return (
    <ScrollPanel label="Worlds">
      <table className="grid">
        <thead>
          <tr>
            <th>
              <span className="visually-hidden">Picture</span>
            </th>
            <th>World</th>
            <th>Sees, does</th>
            <th>Scored by</th>
            {labels.map((label) => (
              <th key={label} className="right">
                {label}
              </th>
            ))}
            {labels.length > 0 && <th className="right">Other scores</th>}
            <th>
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {worlds.map((world) => (
            <tr key={world.id}>
              <Picture id={world.id} />
              <td title={world.summary}>
                {world.title}
                {world.hosts.length > 0 && <span className="muted"> on {world.hosts.join(', ')}</span>}
                <div className="num muted">{world.id}</div>
              </td>
              <td className="nowrap" title={world.action_names.join(', ').toLowerCase()}>
                {world.observation}
                <div className="muted">{acts(world)}</div>
              </td>
              <td className="nowrap">{words(world.evaluation_protocol)}</td>
              {labels.map((label) => (
                <Published key={label} world={world} label={label} />
              ))}
              {labels.length > 0 && <Otherwise world={world} />}
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
    </ScrollPanel>
  );
}
