import { Link } from '@tanstack/react-router';
import type { Environment } from '@/api/catalogue';
import type { Host } from '@/api/hosts';
import { ButtonLink } from '@/components/controls';
import { PermittedButton, useDenied } from '@/components/permission';
import { ScrollPanel } from '@/components/ScrollPanel';
import { comparableScores, environmentImage, unavailableReason } from '@/lib/environments';
import { DASH, describePublished, formatPublished, formatValue, plural, protocolLabel } from '@/lib/format';
import { boundsText, readFields } from '@/lib/schema';
import classes from './environments.module.css';

type Score = Environment['published'][number];
type Props = { environment: Environment };

/** A column of published scores: an agent under a protocol. */
type Column = Pick<Score, 'label' | 'protocol'>;

/** Each agent under each protocol once, in order of appearance. */
const scoreColumns = (environments: readonly Environment[]): Column[] => {
  const columns = environments
    .flatMap(comparableScores)
    .map(({ label, protocol }) => [`${label} ${protocol}`, { label, protocol }] as const);
  return [...new Map(columns).values()];
};

/** On a phone only the columns of the two reference levels from no-op starts fit. */
const scoreClass = ({ label, protocol }: Column): string =>
  ['random', 'human'].includes(label) && protocol === 'noop_starts' ? 'right num' : 'right num wide';

/** A comparable published score, with its source on hover. */
function PublishedScore({ environment, column }: Props & { column: Column }) {
  const score = comparableScores(environment).find(
    ({ label, protocol }) => label === column.label && protocol === column.protocol,
  );
  return (
    <td className={scoreClass(column)} title={score && describePublished(score)}>
      {score ? formatPublished(score.score) : DASH}
    </td>
  );
}

/** The number of scores by other protocols, with the scores on hover. */
function OtherScores({ environment }: Props) {
  const comparable = comparableScores(environment);
  const others = environment.published.filter((each) => !comparable.includes(each));
  return (
    <td className="right num wide" title={others.map(describePublished).join('\n') || undefined}>
      {others.length || DASH}
    </td>
  );
}

function Image({ environment: { id } }: Props) {
  const src = environmentImage(id);
  return <td>{src && <img src={src} alt="" loading="lazy" height={48} style={{ display: 'block' }} />}</td>;
}

/** The observation space, such as "84×84×4 pixels" or "17-dimensional vector". */
const observationText = ({ observation, observation_shape: shape }: Environment): string => {
  if (!shape) return observation;
  return observation === 'pixels' ? `${shape.join('×')} pixels` : `${shape[0] ?? 0}-dimensional vector`;
};

/** The action space, such as "6 discrete actions" or "17-dimensional continuous action". */
const actionText = ({ actions, action_names }: Environment): string =>
  actions === 'discrete'
    ? plural(action_names.length, 'discrete action')
    : `${action_names.length}-dimensional continuous action`;

/** The environment's settings with their defaults, collapsed. */
function Settings({ environment }: Props) {
  const fields = readFields(environment.config_schema, 'environment_config', environment.defaults);
  if (fields.length === 0) return null;
  return (
    <details>
      <summary>{plural(fields.length, 'option')}</summary>
      <ul style={{ margin: '4px 0', paddingLeft: 16, maxWidth: 176, whiteSpace: 'normal' }}>
        {fields.map((field) => (
          <li key={field.key} title={[field.help, boundsText(field)].filter(Boolean).join(' ')}>
            {field.title}: <span className="num">{formatValue(field.default)}</span>{' '}
            <span className="muted">{field.unit}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

type TableProps = {
  environments: readonly Environment[];
  /** Undefined until they are known. */
  hosts: readonly Host[] | undefined;
};

/** All environments: image, spaces, settings, evaluation protocol and published scores. */
export function EnvironmentsTable({ environments, hosts }: TableProps) {
  const denied = useDenied();
  const columns = scoreColumns(environments);
  return (
    <ScrollPanel label="Environments" className={classes.table}>
      <table className="grid">
        <thead>
          <tr>
            <th>
              <span className="visually-hidden">Image</span>
            </th>
            <th>Environment</th>
            <th className="wide">Observation, actions</th>
            <th className="wide">Protocol</th>
            {columns.map((column) => (
              <th key={`${column.label} ${column.protocol}`} className={scoreClass(column)}>
                {column.label}
                <div className="muted">{protocolLabel(column.protocol)}</div>
              </th>
            ))}
            {columns.length > 0 && <th className="right wide">Other scores</th>}
            <th className="actions">
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {environments.map((environment) => (
            <tr key={environment.id}>
              <Image environment={environment} />
              <td title={environment.summary}>
                {environment.title}
                {environment.hosts.length > 0 && (
                  <span className="muted"> on {environment.hosts.join(', ')}</span>
                )}
                <div className="mono muted">{environment.id}</div>
                {unavailableReason(environment, hosts) && (
                  <div className={classes.unavailable}>{unavailableReason(environment, hosts)}</div>
                )}
              </td>
              <td className="nowrap wide">
                <div>{observationText(environment)}</div>
                <div className="muted" title={environment.action_names.join(', ').toLowerCase()}>
                  {actionText(environment)}
                </div>
                <Settings environment={environment} />
              </td>
              <td className="nowrap wide">{protocolLabel(environment.evaluation_protocol)}</td>
              {columns.map((column) => (
                <PublishedScore
                  key={`${column.label} ${column.protocol}`}
                  environment={environment}
                  column={column}
                />
              ))}
              {columns.length > 0 && <OtherScores environment={environment} />}
              <td className="actions">
                <div>
                  <Link to="/" search={{ q: `environment="${environment.id}"` }}>
                    Runs
                  </Link>
                </div>
                {denied === undefined ? (
                  <ButtonLink
                    size="compact-xs"
                    variant="default"
                    to="/new"
                    search={{ environment: environment.id }}
                  >
                    New run
                  </ButtonLink>
                ) : (
                  <PermittedButton size="compact-xs" variant="default" denied={denied}>
                    New run
                  </PermittedButton>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollPanel>
  );
}
