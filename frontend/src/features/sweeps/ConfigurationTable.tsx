import { Button } from '@mantine/core';
import { IconArrowDown, IconArrowUp, IconStarFilled } from '@tabler/icons-react';
import { memo, useState, type ReactNode } from 'react';
import type { Configuration, SweepDetail } from '@/api/sweeps';
import { formatEstimate } from '@/components/Estimate';
import { settingNames } from '@/components/config/settingTitles';
import { ScrollPanel } from '@/components/ScrollPanel';
import { Name } from '@/components/text';
import { formatInteger, formatScore, formatValue } from '@/lib/format';
import { nextSort, scoreRange, sorted, standingOf, variedSettings, type Standing } from './configurations';
import { SeedScores } from './SeedScores';
import classes from './sweeps.module.css';

/** More rows are shown on request: each seed is a link. */
const MAX_ROWS = 100;

type Props = {
  sweep: SweepDetail;
  sort: string;
  onSort: (sort: string) => void;
  /** The titles of the settings by path. */
  titles: ReadonlyMap<string, string>;
};

/** The configurations of a sweep with the scores of their seeds. */
export function ConfigurationTable({ sweep, sort, onSort, titles }: Props) {
  const [all, setAll] = useState(false);
  const paths = variedSettings(sweep);
  const names = settingNames(paths, titles);
  const rows = sorted(sweep, sort);
  const shown = all ? rows : rows.slice(0, MAX_ROWS);
  const range = scoreRange(sweep);
  const [from, to] = range ?? [0, 0];
  const header = (column: string, title: ReactNode, { right = false, hint = '' } = {}) => (
    <SortHeader column={column} sort={sort} onSort={onSort} right={right} hint={hint}>
      {title}
    </SortHeader>
  );
  return (
    <>
      <ScrollPanel label="Scores of the configurations" className={classes.scroll}>
        <table className="grid">
          <thead>
            <tr>
              {header('number', <abbr title="Number of the configuration">No.</abbr>)}
              {header('state', 'State')}
              {paths.map((path) => (
                <SortHeader key={path} column={path} sort={sort} onSort={onSort} right wide hint={path}>
                  {names.get(path)}
                </SortHeader>
              ))}
              {header('seeds', 'Seeds', { right: true, hint: 'Finished runs with a score' })}
              {header('iqm', 'Interquartile mean', { right: true })}
              {header('median', 'Median [95 % CI]', { hint: 'The interval needs 5 scores' })}
              {header('scores', range ? `Scores, ${formatScore(from)} to ${formatScore(to)}` : 'Scores', {
                hint: 'The score of each seed, the interquartile mean and the interval of the median',
              })}
            </tr>
          </thead>
          <tbody>
            {shown.map((configuration) => (
              <Row
                key={configuration.number}
                configuration={configuration}
                standing={standingOf(sweep, configuration)}
                settings={paths.join(',')}
                from={from}
                to={to}
              />
            ))}
          </tbody>
        </table>
      </ScrollPanel>
      {shown.length < rows.length && (
        <Button variant="default" style={{ justifySelf: 'start' }} onClick={() => setAll(true)}>
          Show all {formatInteger(rows.length)} configurations
        </Button>
      )}
    </>
  );
}

type RowProps = {
  configuration: Configuration;
  standing: Standing;
  /** Paths of the settings, separated by commas. */
  settings: string;
  from: number;
  to: number;
};

const Row = memo(function Row({ configuration, standing, settings, from, to }: RowProps) {
  const { number, name, eliminated, n, n_broken_off, iqm, median, runs } = configuration;
  return (
    <tr className={classes.configuration} data-standing={standing}>
      <td className={`num ${classes.number}`}>
        {number}
        <div className={classes.phone}>
          <Name name={name} />
        </div>
      </td>
      <td title={eliminated ?? undefined} className={classes.standing}>
        <StandingText standing={standing} reason={eliminated} />
      </td>
      {settings.split(',').map((path) => (
        <td key={path} className="right num nowrap wide">
          {formatValue(configuration.settings[path])}
        </td>
      ))}
      <td className="right num nowrap" title={`${n} with a score, of ${runs.length} started`}>
        {n === runs.length ? n : `${n} of ${runs.length}`}
        {n_broken_off > 0 && <div className="muted">{n_broken_off} broke off</div>}
      </td>
      <td className="right num">{formatScore(iqm)}</td>
      <td className="num nowrap">{formatEstimate(median, formatScore)}</td>
      <td className={classes.scores}>
        <SeedScores configuration={configuration} from={from} to={to} />
      </td>
    </tr>
  );
});

function StandingText({ standing, reason }: { standing: Standing; reason: string | null }) {
  if (standing === 'best')
    return (
      <span className={classes.best}>
        <IconStarFilled size={12} aria-hidden="true" /> highest
      </span>
    );
  if (standing === 'not raced') return <span className="muted">not raced</span>;
  if (reason === null) return <>{standing}</>;
  return (
    <>
      {standing}: <span className={classes.reason}>{reason}</span>
    </>
  );
}

type HeaderProps = {
  column: string;
  sort: string;
  onSort: (sort: string) => void;
  right: boolean;
  /** Left out on a phone. */
  wide?: boolean;
  hint: string;
  children: ReactNode;
};

/** A column's header; pressing it sorts, pressing it again reverses the order. */
function SortHeader({ column, sort, onSort, right, wide = false, hint, children }: HeaderProps) {
  const up = sort === column;
  const down = sort === `-${column}`;
  return (
    <th
      className={`${right ? 'right' : ''} ${wide ? 'wide' : ''}`}
      title={hint || undefined}
      aria-sort={up ? 'ascending' : down ? 'descending' : 'none'}
    >
      <button type="button" className={classes.sort} onClick={() => onSort(nextSort(sort, column))}>
        {children}
        {up && <IconArrowUp size={12} aria-hidden="true" />}
        {down && <IconArrowDown size={12} aria-hidden="true" />}
      </button>
    </th>
  );
}
