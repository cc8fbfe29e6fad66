import { Link } from '@tanstack/react-router';
import type { Algorithm } from '@/api/catalogue';
import type { Host } from '@/api/hosts';
import { isPlayable, missingExtra, unavailableReason } from '@/lib/environments';
import { Choices } from './Choices';
import {
  algorithmsFor,
  environmentOf,
  withAlgorithm,
  withEnvironment,
  type Catalogue,
  type Draft,
} from './draft';
import { EnvironmentPicker } from './EnvironmentPicker';
import classes from './launch.module.css';

type Props = {
  catalogue: Catalogue;
  draft: Draft;
  /** Undefined until they are known. */
  hosts: readonly Host[] | undefined;
  onEdit: (draft: Draft) => void;
};

const REPRODUCIBILITY: Record<Algorithm['reproducibility'], string> = {
  bitwise:
    'Reproducible: on one host, the same seed gives the same run, resumed or not. A replay memory of more than 256 MiB is refilled after a resume; then only resumes of one checkpoint agree.',
  resumes_agree:
    'Reproducible: on one host, the same seed gives the same run, and resumes of one checkpoint agree.',
  none: 'Not reproducible: its processes work concurrently, so the same seed gives a different run each time.',
};

/** What to train: environment and algorithm. */
export function LaunchSidebar({ catalogue, draft, hosts, onEdit }: Props) {
  const environment = environmentOf(catalogue, draft);
  const lacking = environment && missingExtra(environment, hosts);
  const unavailable = environment && unavailableReason(environment, hosts);
  const algorithms = algorithmsFor(catalogue, environment).map((algorithm) => ({
    ...algorithm,
    lacking: missingExtra(algorithm, hosts),
  }));
  const lackingAlgorithm = algorithms.find(({ id }) => id === draft.algorithm)?.lacking;
  return (
    <div className={classes.sidebar}>
      <section className={`panel ${classes.block}`}>
        <h2 className="section-title">Environment</h2>
        <EnvironmentPicker
          environments={catalogue.environments}
          hosts={hosts}
          value={draft.environment}
          onChange={(id) => onEdit(withEnvironment(catalogue, draft, id))}
        />
        <span className="muted">
          {environment?.summary}{' '}
          {environment && isPlayable(environment) && (
            <Link to="/play" search={{ environment: environment.id }}>
              Play {environment.title} yourself
            </Link>
          )}
        </span>
        {(lacking ?? unavailable) && (
          <span role="note" className={classes.unavailable}>
            {lacking ?? `${unavailable} The run waits in the queue until a host can run it.`}
          </span>
        )}
      </section>
      <section className={`panel ${classes.block}`}>
        <h2 className="section-title">Algorithm</h2>
        <Choices
          label="Algorithm"
          choices={algorithms.map(({ id, title, summary, paper, reproducibility, lacking }) => ({
            id,
            title,
            text: [summary, paper, REPRODUCIBILITY[reproducibility]],
            lacking,
          }))}
          value={draft.algorithm}
          onChange={(id) => onEdit(withAlgorithm(catalogue, draft, id))}
        />
        {lackingAlgorithm && (
          <span role="note" className={classes.unavailable}>
            {lackingAlgorithm}
          </span>
        )}
      </section>
    </div>
  );
}
