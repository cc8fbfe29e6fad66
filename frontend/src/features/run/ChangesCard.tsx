import { Button, CloseButton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { changesQuery, type MetricChange, type RangeOfX, spreadEpisodesQuery } from '@/api/runResources';
import type { RunDetail } from '@/api/runs';
import { X_AXES, type XAxis } from '@/api/series';
import { useCurveView } from '@/components/chart/curveView';
import { ButtonLink } from '@/components/controls';
import { Loading, Problem } from '@/components/feedback';
import { useDenied } from '@/components/permission';
import { formatCount, formatDuration, formatNumber, formatScore, plural } from '@/lib/format';
import { isExternal, stepsOf } from '@/lib/run';
import classes from './changes.module.css';
import { howMuch, isSmall } from './changes';

const MAX_ROWS = 8;
const MAX_EPISODES = 8;

type Props = {
  run: RunDetail;
  selected: string | undefined;
  onWatch: (episode: string) => void;
  /** Opens the notes at steps of the run, with one about this step. */
  onNote: (step: number) => void;
};

/** For a dragged range of the curve: which metrics changed most, its episodes, and the checkpoint before it. */
export default function ChangesCard({ run, selected, onWatch, onNote }: Props) {
  const { view, change } = useCurveView();
  if (view.zoom === null) return null;
  const { x } = view;
  const from = Math.max(0, Math.floor(view.zoom[0]));
  const to = Math.max(from + 1, Math.ceil(view.zoom[1]));
  const range = { x, from, to };
  // Near the start, the part before the range is shorter than the range.
  const before = to - from <= from ? 'as much before' : `the ${placeOf(x, from)} before`;
  const title = X_AXES.find(({ id }) => id === x)?.label.toLowerCase() ?? x;
  return (
    <section className={`panel ${classes.card}`} aria-label="What else changed here?">
      <header className="row wrap">
        <h2 className="section-title">What else changed here?</h2>
        <span className="muted">
          {x === 'agent_steps' ? stepsOf(run) : title} {placeOf(x, from)} to {placeOf(x, to)}, against{' '}
          {from > 0 ? before : 'nothing before'}
        </span>
        <span className="grow" />
        <NoteHere run={run.id} range={range} onNote={onNote} />
        <CloseButton size="sm" aria-label="Show the whole curve" onClick={() => change({ zoom: null })} />
      </header>
      <div className={classes.columns}>
        <Metrics run={run.id} range={range} />
        {!isExternal(run) && (
          <div className={classes.aside}>
            <Episodes run={run.id} range={range} selected={selected} onWatch={onWatch} />
            <CheckpointBefore run={run.id} range={range} />
          </div>
        )}
      </div>
      <Closing run={run.id} range={range} />
    </section>
  );
}

/** A place on an axis: times as times. */
const placeOf = (x: XAxis, value: number): string =>
  x.endsWith('_s') ? formatDuration(value) : formatCount(value);

type PartProps = { run: string; range: RangeOfX };

/** A warning that changing together does not prove a cause; nothing where no metric changed. */
function Closing({ run, range }: PartProps) {
  const { data } = useQuery(changesQuery(run, range));
  if (!data?.items.some((item) => !isSmall(item))) return null;
  return <p className="muted">These changed together; which caused which is not known.</p>;
}

/** Notes something at the start of the range, for users who may write notes. */
function NoteHere({ run, range, onNote }: PartProps & Pick<Props, 'onNote'>) {
  const { data } = useQuery(changesQuery(run, range));
  const denied = useDenied();
  if (denied !== undefined) return null;
  const start = (): void => onNote(data?.agent_steps_from ?? 0);
  return (
    <Button size="compact-xs" variant="default" disabled={!data} onClick={start}>
      Note this
    </Button>
  );
}

function Metrics({ run, range }: PartProps) {
  const { data, error, refetch } = useQuery(changesQuery(run, range));
  if (error && !data) return <Problem error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading label="Comparing the metrics" lines={4} />;
  if (data.n_metrics === 0)
    return <p className="muted">No metric has enough points in this range and in the range before.</p>;
  const large = data.items.filter((change) => !isSmall(change));
  const [ofMachine = [], own = []] = [true, false].map((is) =>
    large.filter(({ of_machine }) => of_machine === is).slice(0, MAX_ROWS),
  );
  return (
    <div>
      {own.length > 0 ? (
        <MetricTable changes={own} />
      ) : (
        <p className="muted">
          None of the {plural(data.n_metrics, 'metric')} {ofMachine.length > 0 && 'of the training '}
          changed by more than it varied before.
        </p>
      )}
      {ofMachine.length > 0 && (
        <details className={classes.machine}>
          <summary>And {ofMachine.length} of the machine</summary>
          <MetricTable changes={ofMachine} />
        </details>
      )}
    </div>
  );
}

function MetricTable({ changes }: { changes: readonly MetricChange[] }) {
  return (
    <table className={classes.metrics}>
      <thead>
        <tr>
          <th>Metric</th>
          <th className="right">Median before</th>
          <th className="right">In the range</th>
          <th
            className="right"
            title="A factor, or the difference of the medians in robust standard deviations (σ) of the values before (modified z-score of Iglewicz and Hoaglin)"
          >
            Change
          </th>
        </tr>
      </thead>
      <tbody>
        {changes.map((change) => (
          <tr key={change.metric}>
            <td title={change.metric}>
              {change.title}
              {change.unit && <span className="muted">, {change.unit}</span>}
            </td>
            <td className="right num">{formatNumber(change.before)}</td>
            <td className="right num">{change.inside === null ? 'NaN or ∞' : formatNumber(change.inside)}</td>
            <td className="right num">
              <b>{howMuch(change)}</b>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

type EpisodesProps = PartProps & { selected: string | undefined; onWatch: (episode: string) => void };

function Episodes({ run, range, selected, onWatch }: EpisodesProps) {
  const { data: changes } = useQuery(changesQuery(run, range));
  const ends = [changes?.agent_steps_from ?? 0, changes?.agent_steps_to ?? 0] as const;
  const { data = [], isSuccess } = useQuery({
    ...spreadEpisodesQuery(run, MAX_EPISODES, ends),
    enabled: changes !== undefined,
  });
  return (
    <div>
      <h3 className={classes.label}>Episodes in it</h3>
      {isSuccess && data.length === 0 && <span className="muted">None was recorded.</span>}
      <span className="row wrap">
        {data.map(({ id, agent_steps, episode_return }) => (
          <Button
            key={id}
            size="compact-xs"
            variant={id === selected ? 'filled' : 'default'}
            onClick={() => onWatch(id)}
            aria-label={`Watch the episode at agent step ${formatCount(agent_steps)}, return ${formatScore(episode_return)}`}
          >
            {formatCount(agent_steps)}: {formatScore(episode_return)}
          </Button>
        ))}
      </span>
    </div>
  );
}

function CheckpointBefore({ run, range }: PartProps) {
  const { data } = useQuery(changesQuery(run, range));
  const denied = useDenied();
  const checkpoint = data?.checkpoint;
  return (
    <div>
      <h3 className={classes.label}>Checkpoint before it</h3>
      {checkpoint ? (
        <span className="row wrap">
          at agent step {formatCount(checkpoint.agent_steps)}
          {denied === undefined && (
            <ButtonLink
              size="compact-xs"
              variant="default"
              to="/new"
              search={{ fork: run, checkpoint: checkpoint.id }}
            >
              Fork from here
            </ButtonLink>
          )}
        </span>
      ) : (
        <span className="muted">{data ? 'There is none.' : '…'}</span>
      )}
    </div>
  );
}
