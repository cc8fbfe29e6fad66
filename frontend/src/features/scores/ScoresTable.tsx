import { useRouter } from '@tanstack/react-router';
import { Fragment } from 'react';
import type { Environment } from '@/api/catalogue';
import type { Host } from '@/api/hosts';
import type { ScoreColumn, ScoreRow, Scores } from '@/api/scores';
import { ButtonLink } from '@/components/controls';
import { PermittedButton, useDenied } from '@/components/permission';
import { ScrollPanel } from '@/components/ScrollPanel';
import { served } from '@/lib/base';
import { isPlayable } from '@/lib/environments';
import { DASH, formatScore, plural } from '@/lib/format';
import { EnvironmentCell } from './EnvironmentCell';
import { percent, ScoreValue, type Follow } from './ScoreValue';
import classes from './scores.module.css';

const FOOT = { mean: 'Mean', median: 'Median', iqm: 'IQM' } as const;

type Props = {
  scores: Scores;
  /** Those of the scores that are shown. */
  rows: readonly ScoreRow[];
  environments: readonly Environment[];
  /** Undefined until they are known. */
  hosts: readonly Host[] | undefined;
  isNormalised: boolean;
};

/** Environments as rows, algorithms and published agents as columns; the foot is over the same environments. */
export function ScoresTable({ scores, rows, environments, hosts, isNormalised }: Props) {
  const denied = useDenied();
  const router = useRouter();
  const follow: Follow = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    router.history.push(event.currentTarget.getAttribute('href') ?? '/');
  };
  const byId = new Map(environments.map((environment) => [environment.id, environment]));
  const columns = scores.columns.filter(({ shown }) => shown);
  return (
    <ScrollPanel label="Scores" className={classes.table}>
      <table className="grid">
        <thead>
          <tr>
            <th scope="col" className={classes.environment}>
              Environment
            </th>
            {columns.map(({ id, title, source }) => (
              <th key={id} scope="col" className={`right ${source === 'ours' ? '' : classes.published}`}>
                {title.split(/(?<=,) /).map((part, at) => (
                  <Fragment key={part}>
                    {at > 0 && ' '}
                    <span className="nowrap">{part}</span>
                  </Fragment>
                ))}
                <div className={classes.small}>{source === 'published' ? 'published' : 'here'}</div>
              </th>
            ))}
            <th className="actions">
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const environment = byId.get(row.environment);
            return (
              <tr key={row.environment}>
                {environment && (
                  <EnvironmentCell environment={environment} protocol={row.protocol} hosts={hosts} />
                )}
                {columns.map((column, at) => {
                  const cell = row.cells[at];
                  return (
                    <td
                      key={column.id}
                      className={`right num ${column.source === 'ours' ? '' : classes.published}`}
                    >
                      {cell ? (
                        <ScoreValue
                          cell={cell}
                          column={column}
                          title={row.title}
                          protocol={row.protocol}
                          isNormalised={isNormalised}
                          follow={follow}
                        />
                      ) : (
                        <Missing row={row} column={column} denied={denied !== undefined} follow={follow} />
                      )}
                    </td>
                  );
                })}
                <td className="actions">
                  {denied === undefined ? (
                    <ButtonLink
                      size="compact-xs"
                      variant="default"
                      to="/new"
                      search={{ environment: row.environment }}
                    >
                      New run
                    </ButtonLink>
                  ) : (
                    <PermittedButton size="compact-xs" variant="default" denied={denied}>
                      New run
                    </PermittedButton>
                  )}
                  {environment && isPlayable(environment) && (
                    <>
                      {' '}
                      <ButtonLink
                        size="compact-xs"
                        variant="subtle"
                        to="/play"
                        search={{ environment: row.environment }}
                        aria-label={`Play ${row.title} yourself`}
                      >
                        Play
                      </ButtonLink>
                    </>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
        <Foot scores={scores} columns={columns} isNormalised={isNormalised} />
      </table>
    </ScrollPanel>
  );
}

type MissingProps = { row: ScoreRow; column: ScoreColumn; denied: boolean; follow: Follow };

/** An empty cell: where the algorithm can be trained, a link to the form that starts the run. */
function Missing({ row, column, denied, follow }: MissingProps) {
  if (denied || !row.runnable.includes(column.id)) return <span className="muted">{DASH}</span>;
  const search = new URLSearchParams({
    environment: row.environment,
    algorithm: column.id,
    protocol: row.protocol,
  });
  const label = `Train ${column.title} on ${row.title}`;
  return (
    <a
      className={classes.missing}
      href={served(`/new?${search}`)}
      onClick={follow}
      title={label}
      aria-label={label}
    >
      +
    </a>
  );
}

type FootProps = { scores: Scores; columns: readonly ScoreColumn[]; isNormalised: boolean };

function Foot({ scores, columns, isNormalised }: FootProps) {
  const over = isNormalised ? scores.normalised_environments : scores.foot_environments;
  if (scores.foot.length === 0 || over.length === 0) return null;
  const names = scores.rows.filter(({ environment }) => over.includes(environment)).map(({ title }) => title);
  return (
    <tfoot>
      {scores.foot.map((foot) => (
        <tr key={foot.name}>
          <th scope="row" className={classes.environment} title={names.join(', ')}>
            {FOOT[foot.name]}
            <div className={classes.small}>over {plural(over.length, 'environment')}</div>
          </th>
          {columns.map(({ id, source }, at) => {
            const value = (isNormalised ? foot.normalised : foot.values)[at];
            return (
              <td key={id} className={`right num ${source === 'ours' ? '' : classes.published}`}>
                {isNormalised ? percent(value) : formatScore(value)}
              </td>
            );
          })}
          <td className="actions" />
        </tr>
      ))}
    </tfoot>
  );
}
