import { Button } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo, useRef } from 'react';
import { comparisonQuery } from '@/api/comparisons';
import { useNames } from '@/api/names';
import { MAX_COMPARED } from '@/lib/runBounds';
import { runsByIdQuery, runsQuery, type Run } from '@/api/runs';
import { CurveViewProvider } from '@/components/chart/CurveViewProvider';
import {
  distinctStyles,
  formatGroupStyles,
  formatRunStyles,
  parseGroupStyles,
  parseRunStyles,
  restyled,
  styleParameters,
} from '@/components/chart/seriesStyles';
import { useSettingTitles } from '@/components/config/settingTitles';
import { formatSizes, parseSizes } from '@/components/chart/panelSize';
import { Loading, Problem } from '@/components/feedback';
import classes from '@/features/compare/compare.module.css';
import { CompareCharts } from '@/features/compare/CompareCharts';
import { GroupChips } from '@/features/compare/GroupChips';
import { NothingCompared } from '@/features/compare/NothingCompared';
import { RunChips } from '@/features/compare/RunChips';
import { RunFinder } from '@/features/compare/RunFinder';
import { DEFAULT_SPREAD, EPISODE_RETURN, possible } from '@/api/series';
import { ScoreScatter } from '@/features/compare/ScoreScatter';
import { Statistics } from '@/features/compare/Statistics';
import { ConfigDiffTable, ScoresTable } from '@/features/compare/Tables';
import { SaveAsStudy } from '@/features/papers/SaveAsStudy';
import { SideBySide } from '@/features/replay/SideBySide';
import { useStepTaken } from '@/lib/firstSteps';
import { useSettled } from '@/lib/hooks';
import { joinNames, splitNames } from '@/lib/names';
import { hasEnded, isExternal } from '@/lib/run';
import { defined } from '@/lib/search';
import type { compareSearch } from '@/components/run/search';

type Search = ReturnType<typeof compareSearch>;

/** Why no study can be made of any of the runs. */
const studyRefusal = (runs: readonly Run[]): string | undefined =>
  runs.length > 0 && runs.every(isExternal)
    ? 'These runs were trained elsewhere: a study has runs that are trained here.'
    : undefined;

/** The runs that match the filter of the address, the oldest first, so that later ones change no colours. */
function useMatching({ runs, q }: Search) {
  const filter = runs === undefined ? q : undefined;
  const archived = filter?.includes('archived') ? ({ archived: 'all' } as const) : {};
  const { data, error } = useInfiniteQuery({
    ...runsQuery({ filter: filter ?? '', ...archived, sort: 'created_at', limit: MAX_COMPARED }),
    enabled: filter !== undefined,
  });
  const page = filter === undefined ? undefined : data?.pages[0];
  const ids = useMemo(() => page?.items.map(({ id }) => id), [page]);
  const isPending = filter !== undefined && data === undefined && error === null;
  return { ids, total: page?.total ?? 0, error: filter === undefined ? null : error, isPending };
}

type Props = {
  search: Search;
  onSearch: (search: Search, replace?: boolean) => void;
  /** The title. */
  head: ReactNode;
};

/** Several runs, or configs over seeds: curves, statistics, settings and replays. */
export function CompareView({ search, onSearch, head }: Props) {
  const finder = useRef<HTMLInputElement>(null);
  const hidden = useMemo(() => new Set(search.hidden?.split(',')), [search.hidden]);
  const matching = useMatching(search);
  const wanted = useMemo(
    () => matching.ids ?? [...new Set(search.runs?.split(',').filter(Boolean) ?? [])],
    [matching.ids, search.runs],
  );
  const ids = useMemo(() => wanted.slice(0, MAX_COMPARED), [wanted]);
  const { data, error, refetch, isPlaceholderData } = useInfiniteQuery(runsByIdQuery(ids));
  const runs = useMemo(() => {
    const byId = new Map(data?.pages[0]?.items.map((run) => [run.id, run]));
    return ids.flatMap((id) => byId.get(id) ?? []);
  }, [data, ids]);
  useStepTaken('compare', runs.length > 1);
  const loaded = data !== undefined && !isPlaceholderData;
  const notFound = useMemo(() => {
    if (!loaded) return [];
    return ids.filter((id) => !runs.some((run) => run.id === id));
  }, [loaded, ids, runs]);
  // While the next page loads, runs found missing before are not requested again.
  const missing = useSettled(notFound, loaded);
  const existing = useMemo(() => ids.filter((id) => !missing.includes(id)), [ids, missing]);
  const grouped = search.group === 'seed';
  const { centre = DEFAULT_SPREAD.centre, interval = DEFAULT_SPREAD.interval } = search;
  const seeds = search.seeds ?? false;
  const spread = useMemo(() => possible({ centre, interval, seeds }), [centre, interval, seeds]);
  const names = useNames(runs);
  const titles = useSettingTitles(runs);
  const styles = useMemo(() => parseRunStyles(ids, search.styles), [ids, search.styles]);
  const groupStyles = useMemo(() => parseGroupStyles(search.group_styles), [search.group_styles]);
  const dots = useMemo(
    () => styleParameters(new Map(runs.map(({ id }) => [id, styles.get(id) ?? 0]))),
    [runs, styles],
  );
  const view = {
    score: search.score ?? 'training',
    at: search.at ?? 'common',
    threshold: search.threshold,
    protocol: search.protocol,
    baseline: search.baseline,
    pairs: search.pairs,
  } as const;
  const scoredBy = runs.map(({ return_metric }) => return_metric ?? '').join(' ');
  // The same request as that of the statistics.
  const training = runs.some(({ state }) => !hasEnded(state));
  const trainedS = runs.reduce(
    (sum, { state, wall_time_s }) => sum + (hasEnded(state) ? 0 : (wall_time_s ?? 0)),
    0,
  );
  const { data: comparison } = useQuery({
    ...comparisonQuery({ runs: runs.map(({ id }) => id), ...view, training }),
    enabled: grouped && runs.length > 0,
  });
  const groups = useMemo(() => (grouped ? (comparison?.groups ?? []) : []), [grouped, comparison]);
  const stylesOfGroups = useMemo(
    () =>
      distinctStyles(
        groups.map(({ id }) => id),
        groupStyles,
      ),
    [groups, groupStyles],
  );
  /** Over seeds whole groups are hidden: the mean and the band are of all their runs. */
  const notDrawn = useMemo(() => {
    if (!grouped) return hidden;
    const ofGroups = groups.filter(({ id }) => hidden.has(id));
    return new Set(ofGroups.flatMap(({ id, runs: members }) => [id, ...members.map(({ run }) => run)]));
  }, [grouped, groups, hidden]);
  const drawnStyles = useMemo(() => {
    if (!grouped) return styleParameters(new Map(existing.map((id) => [id, styles.get(id) ?? 0])));
    // Each group keeps its style while others are hidden.
    return styleParameters(new Map(), notDrawn.size > 0 ? stylesOfGroups : groupStyles);
  }, [existing, styles, grouped, groupStyles, notDrawn, stylesOfGroups]);
  const environments = useMemo(() => [...new Set(runs.map(({ environment }) => environment))], [runs]);
  const sizes = useMemo(() => parseSizes(search.sizes), [search.sizes]);
  const metrics = splitNames(search.metrics ?? EPISODE_RETURN).filter((metric) => metric !== 'none');

  const change = (to: { [K in keyof Search]?: Search[K] | undefined }, replace = false): void => {
    onSearch(defined({ ...search, ...to }), replace);
  };
  /** A run that is added gets the first free style, the others keep theirs. */
  const setRuns = (next: readonly string[]): void =>
    change({
      q: undefined,
      runs: [...new Set(next)].join(',') || undefined,
      hidden: [...hidden].filter((id) => !wanted.includes(id) || next.includes(id)).join(',') || undefined,
      styles: formatRunStyles(distinctStyles(next, styles)) || undefined,
    });
  const add = (id: string): void => setRuns([...wanted, id]);
  const remove = (id: string): void => setRuns(wanted.filter((other) => other !== id));
  const hide = (id: string, isHidden: boolean): void => {
    const next = new Set(hidden);
    if (isHidden) next.add(id);
    else next.delete(id);
    change({ hidden: [...next].join(',') || undefined }, true);
  };

  return (
    <div className="page" style={{ display: 'grid', gap: 12 }}>
      <div className={classes.top}>
        {head}
        <span className="muted">{grouped && comparison ? comparison.shared_name : names.shared}</span>
        <Button
          className={classes.skip ?? ''}
          size="compact-xs"
          onClick={() => document.querySelector<HTMLElement>('[aria-label="Charts"]')?.focus()}
        >
          Skip to the charts
        </Button>
        <RunFinder compared={wanted} onAdd={add} onRemove={remove} finder={finder} />
        {existing.length > 0 && <SaveAsStudy source={{ runs: existing }} refusal={studyRefusal(runs)} />}
      </div>
      <div className={`panel ${classes.runs}`}>
        {matching.total > MAX_COMPARED && (
          <div role="status">
            {`At most ${MAX_COMPARED} runs can be compared: these are the first ${MAX_COMPARED} of ${matching.total} that match.`}
          </div>
        )}
        {wanted.length > MAX_COMPARED && (
          <div role="status" className="row wrap">
            {`At most ${MAX_COMPARED} runs can be compared: these are the first ${MAX_COMPARED} of ${wanted.length}. Remove some to see the others, or select fewer in the list of runs.`}
            <Button size="compact-xs" variant="default" onClick={() => setRuns(ids)}>
              {`Keep only these ${MAX_COMPARED}`}
            </Button>
          </div>
        )}
        {groups.length > 0 && missing.length === 0 ? (
          <GroupChips
            groups={groups}
            styles={stylesOfGroups}
            onStyle={(group, style) =>
              change({ group_styles: formatGroupStyles(restyled(stylesOfGroups, group, style)) }, true)
            }
            hidden={hidden}
            onHide={hide}
            onAdd={add}
            onRemove={(removed) => setRuns(wanted.filter((id) => !removed.includes(id)))}
            finder={finder}
          />
        ) : (
          <RunChips
            runs={runs}
            names={names}
            ids={existing}
            missing={missing.filter((id) => ids.includes(id))}
            styles={styles}
            onStyle={(id, style) =>
              change({ styles: formatRunStyles(restyled(styles, id, style)) || undefined }, true)
            }
            hidden={hidden}
            onHide={hide}
            onAdd={add}
            onRemove={remove}
            finder={finder}
          />
        )}
      </div>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {matching.error && <Problem error={matching.error} invalid="Invalid filter" />}
      {matching.isPending && <Loading label="Loading the runs" lines={8} />}
      {existing.length === 0 && !matching.isPending && (
        <div className="panel">
          <NothingCompared onRuns={setRuns} />
        </div>
      )}
      {existing.length > 0 && (
        <CurveViewProvider
          search={search}
          runs={runs}
          onSearch={(to) => change(to, to.x === search.x)}
          styles={drawnStyles}
        >
          <CompareCharts
            runs={existing}
            scoredBy={scoredBy}
            trainedS={trainedS}
            environments={environments}
            metrics={metrics}
            onMetrics={(to) =>
              change(
                { metrics: joinNames(to) === EPISODE_RETURN ? undefined : joinNames(to) || 'none' },
                // Only moved: each press of an arrow key moves a panel by one place.
                to.length === metrics.length,
              )
            }
            sizes={sizes}
            onSizes={(to) => change({ sizes: formatSizes(to) || undefined }, true)}
            grouped={grouped}
            onGrouped={(to) => change({ group: to ? 'seed' : undefined })}
            spread={spread}
            onSpread={({ centre, interval, seeds }) =>
              change({
                centre: centre === DEFAULT_SPREAD.centre ? undefined : centre,
                interval: interval === DEFAULT_SPREAD.interval ? undefined : interval,
                seeds: seeds || undefined,
              })
            }
            hidden={notDrawn}
          />
        </CurveViewProvider>
      )}
      {runs.length > 0 && (
        <Statistics
          runs={runs}
          grouped={grouped}
          wanted={groupStyles}
          onStyle={(all, group, style) =>
            change({ group_styles: formatGroupStyles(restyled(all, group, style)) }, true)
          }
          view={view}
          onRuns={setRuns}
          onView={({ score, at, threshold, protocol, baseline, pairs }) =>
            change({
              baseline,
              pairs,
              score: score === 'training' ? undefined : score,
              at: at === 'common' ? undefined : at,
              threshold,
              protocol,
            })
          }
          below={
            <>
              <ScoreScatter
                runs={runs}
                styles={grouped ? drawnStyles : dots}
                grouped={grouped}
                titles={titles}
                setting={search.setting}
                onSetting={(setting) => change({ setting }, true)}
                score={search.drawn ?? 'score'}
                onScore={(score) => change({ drawn: score === 'score' ? undefined : score }, true)}
              />
              <section style={{ display: 'grid', gap: 8, minWidth: 0 }}>
                <h2 className="section-title">Runs</h2>
                <ScoresTable runs={runs} names={names} />
              </section>
              <section style={{ display: 'grid', gap: 8, minWidth: 0 }}>
                <h2 className="section-title">Config diff</h2>
                <ConfigDiffTable runs={runs} titles={titles} />
              </section>
              <section style={{ display: 'grid', gap: 8, minWidth: 0 }}>
                <h2 className="section-title">Side-by-side replay</h2>
                <SideBySide runs={runs} />
              </section>
            </>
          }
        />
      )}
    </div>
  );
}
