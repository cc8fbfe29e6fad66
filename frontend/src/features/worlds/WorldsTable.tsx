import { Link } from '@tanstack/react-router';
import { ScrollPanel } from '@/components/ScrollPanel';
import type { Environment } from '@/api/catalog';
import { ButtonLink } from '@/components/links';
import { DASH, formatScore, formatSetting, plural } from '@/lib/format';
import { protocolWords } from '@/lib/protocol';
import { boundsText, readSettings } from '@/lib/schema';
import { pictureOf } from '@/components/world/pictures';

type Score = Environment['published'][number];

const told = ({ label, score, protocol, source }: Score): string =>
  `${label} ${formatScore(score)}: ${source}; ${protocolWords(protocol)}`;

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

/** What an observation is, such as "84×84×4 pixels" or "17 numbers". */
const sees = ({ observation, observation_shape: shape }: Environment): string => {
  if (!shape) return observation;
  return observation === 'pixels' ? `${shape.join('×')} pixels` : `sees ${plural(shape[0] ?? 0, 'number')}`;
};

/** What can be set, opened on demand: each with its default, and more about it on hover. */
function Settings({ world }: { world: Environment }) {
  const settings = readSettings(world.config_schema, 'environment_config', world.defaults);
  if (settings.length === 0) return null;
  return (
    <details>
      <summary>{plural(settings.length, 'setting')}</summary>
      <ul style={{ margin: '4px 0', paddingLeft: 16, maxWidth: 176, whiteSpace: 'normal' }}>
        {settings.map((setting) => (
          <li key={setting.key} title={[setting.help, boundsText(setting)].filter(Boolean).join(' ')}>
            {setting.title}: <span className="num">{formatSetting(setting.fallback)}</span>{' '}
            <span className="muted">{setting.unit}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

const acts = ({ actions, action_names }: Environment): string =>
  actions === 'discrete'
    ? plural(action_names.length, 'action')
    : `sets ${plural(action_names.length, 'number')}`;

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
            <th className="wide">Sees, does</th>
            <th className="wide">Scored by</th>
            {labels.map((label) => (
              <th key={label} className="right">
                {label}
              </th>
            ))}
            {labels.length > 0 && <th className="right">Other scores</th>}
            <th className="actions">
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
              <td className="nowrap wide">
                <div>{sees(world)}</div>
                <div className="muted" title={world.action_names.join(', ').toLowerCase()}>
                  {acts(world)}
                </div>
                <Settings world={world} />
              </td>
              <td className="nowrap wide">{protocolWords(world.evaluation_protocol)}</td>
              {labels.map((label) => (
                <Published key={label} world={world} label={label} />
              ))}
              {labels.length > 0 && <Otherwise world={world} />}
              <td className="actions">
                <div>
                  <Link to="/" search={{ q: `environment="${world.id}"` }}>
                    runs
                  </Link>
                </div>
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
