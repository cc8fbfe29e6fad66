import { NativeSelect, useComputedColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { groupsOf, scatterQuery, type Score, type StyleParameters } from '@/api/figures';
import type { Figure, Trace } from '@/api/tails';
import type { Run } from '@/api/runs';
import curves from '@/components/chart/curves.module.css';
import { ExportButton } from '@/components/chart/export/ExportFigure';
import { sourceAt } from '@/components/chart/export/source';
import { Scatter } from '@/components/chart/Scatter';
import { settingNames } from '@/components/config/settingTitles';
import { Empty, Problem } from '@/components/feedback';
import { formatInteger, plural } from '@/lib/format';
import classes from './compare.module.css';
import { configDiff } from './Tables';

const SCORES: readonly { value: Score; label: string }[] = [
  { value: 'score', label: 'Score' },
  { value: 'best_return', label: 'Best return' },
];

/** The settings in which runs differ, those of the algorithm first; the seed last. */
export function differing(runs: readonly Run[]): string[] {
  const rank = (path: string): number => (path.startsWith('config.') ? 0 : path === 'seed' ? 2 : 1);
  return configDiff(runs)
    .map(({ path }) => path)
    .toSorted((a, b) => rank(a) - rank(b));
}

/** The seed, the device, the limits, and settings of evaluations and checkpoints: they hardly explain a score. */
const BOOKKEEPING = /^(seed|device|stop\..*|config\.(evaluation|checkpoint)_.*)$/;

/** The share of the scores' variance that a setting explains, adjusted for its number of values; 0 at least. */
function effectOf(values: readonly unknown[], scores: readonly number[]): number {
  const mean = (numbers: readonly number[]): number =>
    numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
  const squares = (numbers: readonly number[]): number =>
    numbers.reduce((sum, x) => sum + (x - mean(numbers)) ** 2, 0);
  const groups = [...Map.groupBy(scores.keys(), (at) => JSON.stringify(values[at])).values()].map((members) =>
    members.map((at) => scores[at] ?? 0),
  );
  const within = groups.reduce((sum, group) => sum + squares(group), 0);
  const [n, k, all] = [scores.length, groups.length, squares(scores)];
  return k < 2 || n <= k || all === 0 ? 0 : Math.max(0, 1 - (within / all) * ((n - 1) / (n - k)));
}

/** The setting to draw first: the one that explains most of the scores, and never one of bookkeeping if others differ. */
export function mostTelling(
  runs: readonly Run[],
  options: readonly string[],
  score: Score,
): string | undefined {
  const scored = runs.filter((run) => run[score] !== null);
  const scores = scored.map((run) => run[score] ?? 0);
  const effects = new Map(configDiff(scored).map(({ path, values }) => [path, effectOf(values, scores)]));
  const candidates = options.filter((path) => !BOOKKEEPING.test(path));
  return candidates.toSorted((a, b) => (effects.get(b) ?? 0) - (effects.get(a) ?? 0))[0] ?? options[0];
}

/** How many runs are not drawn, and why; undefined if all are. */
export function notDrawn(runs: readonly Run[], score: Score, figure: Figure): string | undefined {
  const [dots] = figure.data as readonly Trace[];
  const n = dots?.x?.length ?? 0;
  if (n >= runs.length) return undefined;
  const scoreless = runs.filter((run) => run[score] === null).length;
  const early = score === 'score' ? runs.filter((run) => run.score_is_early).length : 0;
  const changed = runs.filter((run) => Object.keys(run.departures).length > 0).length;
  const unset = runs.length - n - scoreless - early;
  const orChanged = changed > 0 ? ', or with one that changed during training' : '';
  const reasons = [
    ...(scoreless > 0 ? [`${formatInteger(scoreless)} without a score yet`] : []),
    ...(early > 0 ? [`${formatInteger(early)} with an early score`] : []),
    ...(unset > 0 ? [`${formatInteger(unset)} without a value of this hyperparameter${orChanged}`] : []),
  ];
  return `${formatInteger(n)} of ${plural(runs.length, 'run')} drawn: ${reasons.join(', ')}.`;
}

type Props = {
  runs: readonly Run[];
  styles?: StyleParameters | undefined;
  /** Whether each run has the style of its group. */
  grouped?: boolean;
  /** The titles of the settings by path. */
  titles?: ReadonlyMap<string, string>;
  /** The setting in the address, if any. */
  setting: string | undefined;
  onSetting: (setting: string) => void;
  score: Score;
  onScore: (score: Score) => void;
};

/** The score of each run against a setting in which they differ. */
export function ScoreScatter({
  runs,
  styles,
  grouped = false,
  titles = new Map(),
  setting,
  onSetting,
  score,
  onScore,
}: Props) {
  const theme = useComputedColorScheme('light');
  const options = differing(runs);
  const names = settingNames(options, titles);
  const x = setting && options.includes(setting) ? setting : mostTelling(runs, options, score);
  // A new score of a run that trains is a new dot.
  const version = runs.map((run) => `${run[score]}`).join(' ');
  const { data, error, refetch, isPlaceholderData } = useQuery(
    scatterQuery({ runs: runs.map(({ id }) => id), x: x ?? '', y: score, theme, styles, grouped }, version),
  );
  const [failed, setFailed] = useState<unknown>(null);

  if (x === undefined) return null;
  const problem = error ?? failed;
  const retry = () => {
    setFailed(null);
    void refetch();
  };
  return (
    <section className={classes.statistics} aria-label="Score by hyperparameter">
      <header className={curves.head}>
        <h2 className="section-title">Score by hyperparameter</h2>
        <span className="grow" />
        <NativeSelect
          aria-label="Hyperparameter"
          value={x}
          data={options.map((path) => ({ value: path, label: names.get(path) ?? path }))}
          onChange={({ currentTarget }) => onSetting(currentTarget.value)}
        />
        <NativeSelect
          aria-label="Score to draw"
          value={score}
          data={[...SCORES]}
          onChange={({ currentTarget }) =>
            onScore(SCORES.find(({ value }) => value === currentTarget.value)?.value ?? 'score')
          }
        />
        <ExportButton
          source={sourceAt(
            { name: 'score-by-setting', title: 'Score by hyperparameter' },
            '/api/v1/figures/scatter',
            { run: runs.map(({ id }) => id), x, y: score, ...styles, ...groupsOf(grouped) },
          )}
        />
      </header>
      {problem ? (
        <Problem error={problem} onRetry={retry} />
      ) : (
        <div className="panel" style={{ padding: '8px 12px' }}>
          {data && runs.every((run) => run[score] === null) ? (
            <Empty>None of these runs has a score yet.</Empty>
          ) : (
            <>
              <Scatter
                label={`${score === 'score' ? 'Score' : 'Best return'} of each run by ${names.get(x) ?? x}`}
                figure={data}
                onFailed={setFailed}
              />
              <div className="muted" role="status" style={{ minHeight: '1lh' }}>
                {data && !isPlaceholderData && notDrawn(runs, score, data)}
              </div>
            </>
          )}
        </div>
      )}
    </section>
  );
}
