import { Link } from '@tanstack/react-router';
import type { Environment } from '@/api/catalogue';
import type { Host } from '@/api/hosts';
import { ButtonLink } from '@/components/controls';
import { PermittedButton, useDenied } from '@/components/permission';
import { ScrollPanel } from '@/components/ScrollPanel';
import { environmentImage, unavailableReason } from '@/lib/environments';
import { DASH, formatNumber, formatScore, formatValue, plural, protocolLabel } from '@/lib/format';
import { boundsText, readFields } from '@/lib/schema';
import classes from './environments.module.css';

type Score = Environment['published'][number];
type Props = { environment: Environment };

/** A score with no more digits than were published. */
const formatPublished = (score: number): string =>
  Math.abs(score) < 10 ? formatNumber(score) : formatScore(score);

const describe = ({ label, score, protocol, source }: Score): string =>
  `${label} ${formatPublished(score)}: ${source}; ${protocolLabel(protocol)}`;

/** The published scores by protocols under which agents can be evaluated here: only these are comparable. */
const comparableScores = ({ published, evaluation_protocols }: Environment): Score[] =>
  published.filter(({ protocol }) => evaluation_protocols.includes(protocol));

/** On a phone only the columns of the two reference levels fit. */
const scoreClass = (label: string): string =>
  ['random', 'human'].includes(label) ? 'right num' : 'right num wide';

/** A comparable published score, with its source on hover. */
function PublishedScore({ environment, label }: Props & { label: string }) {
  const score = comparableScores(environment).find((each) => each.label === label);
  return (
    <td className={scoreClass(label)} title={score && describe(score)}>
      {score ? formatPublished(score.score) : DASH}
    </td>
  );
}

/** The number of scores by other protocols, with the scores on hover. */
function OtherScores({ environment }: Props) {
  const comparable = comparableScores(environment);
  const others = environment.published.filter((each) => !comparable.includes(each));
  return (
    <td className="right num wide" title={others.map(describe).join('\n') || undefined}>
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
  const labels = [
    ...new Set(environments.flatMap((each) => comparableScores(each).map(({ label }) => label))),
  ];
  const protocols = new Map(
    environments.flatMap((each) => comparableScores(each)).map(({ label, protocol }) => [label, protocol]),
  );
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
            {labels.map((label) => (
              <th key={label} className={scoreClass(label)}>
                {label}
                <div className="muted">{protocolLabel(protocols.get(label) ?? '')}</div>
              </th>
            ))}
            {labels.length > 0 && <th className="right wide">Other scores</th>}
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
                <div className="num muted">{environment.id}</div>
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
              {labels.map((label) => (
                <PublishedScore key={label} environment={environment} label={label} />
              ))}
              {labels.length > 0 && <OtherScores environment={environment} />}
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
