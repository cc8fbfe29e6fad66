import { Link } from '@tanstack/react-router';
import type { Environment } from '@/api/catalogue';
import type { Host } from '@/api/hosts';
import { environmentImage, unavailableReason } from '@/lib/environments';
import { formatValue, plural, protocolLabel } from '@/lib/format';
import { boundsText, readFields } from '@/lib/schema';
import classes from './scores.module.css';

type Props = {
  environment: Environment;
  /** Of the scores of the row. */
  protocol: string;
  /** Undefined until they are known. */
  hosts: readonly Host[] | undefined;
};

/** The head of a row: image, name and protocol; details of the environment, collapsed. */
export function EnvironmentCell({ environment, protocol, hosts }: Props) {
  const { id, title, summary } = environment;
  const src = environmentImage(id);
  const reason = unavailableReason(environment, hosts);
  return (
    <th scope="row" className={classes.environment}>
      <div className={classes.head}>
        <span className={classes.image}>{src && <img src={src} alt="" loading="lazy" />}</span>
        <div title={summary}>
          {title}
          {environment.hosts.length > 0 && <span className="muted"> on {environment.hosts.join(', ')}</span>}
          <div className={classes.small}>{protocolLabel(protocol)}</div>
          {reason && <div className={classes.unavailable}>{reason}</div>}
          <Details environment={environment} />
        </div>
      </div>
    </th>
  );
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

/** Id, spaces, and the environment's settings with their defaults, collapsed. */
function Details({ environment }: Pick<Props, 'environment'>) {
  const fields = readFields(environment.config_schema, 'environment_config', environment.defaults);
  return (
    <details className={classes.details}>
      <summary aria-label={`Details of ${environment.title}`}>Details</summary>
      <ul>
        <li className="mono">{environment.id}</li>
        <li>{observationText(environment)}</li>
        <li title={environment.action_names.join(', ').toLowerCase()}>{actionText(environment)}</li>
        <li>
          <Link to="/" search={{ q: `environment="${environment.id}"` }}>
            Runs
          </Link>
        </li>
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
