import { Button, Popover } from '@mantine/core';
import { useMediaQuery, useWindowEvent } from '@mantine/hooks';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo, useRef, useState } from 'react';
import { comparisonQuery } from '@/api/comparisons';
import { useNames } from '@/api/names';
import { MAX_COMPARED } from '@/lib/runBounds';
import { runsByIdQuery, runsQuery, type Run } from '@/api/runs';
import { DEFAULT_SPREAD, possible } from '@/api/series';
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
import { ButtonLink } from '@/components/controls';
import { Loading, Problem } from '@/components/feedback';
import { SaveAsStudy } from '@/features/papers/SaveAsStudy';
import { SideBySide } from '@/features/replay/SideBySide';
import { useStepTaken } from '@/lib/firstSteps';
import { isDialogOpen, useSettled } from '@/lib/hooks';
import { hasEnded, isExternal } from '@/lib/run';
import { logOf, panelsOf, searchOfPanels, withLog } from '@/components/run/panels';
import { type compareSearch, NONE_HIDDEN } from '@/components/run/search';
import { defined } from '@/lib/search';
import classes from '@/features/compare/compare.module.css';
import { CompareCharts } from '@/features/compare/CompareCharts';
import type { PanelPage } from '@/features/compare/panels/kinds';
import { NothingCompared } from '@/features/compare/NothingCompared';
import { hiddenOf, type Row, rowsOfGroups, rowsOfRuns } from '@/features/compare/rows';
import { RunFinder } from '@/features/compare/RunFinder';
import { ScoreScatter } from '@/features/compare/ScoreScatter';
import { SeriesList } from '@/features/compare/SeriesList';
import { Statistics } from '@/features/compare/Statistics';
import { ConfigDiffTable, ScoresTable } from '@/features/compare/Tables';
import { VerdictPanel } from '@/features/compare/Verdict';

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

/** The runs of a page: those that it names or that match its filter, as far as they exist. */
function useCompared(search: Search) {
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
  const loaded = data !== undefined && !isPlaceholderData;
  const notFound = useMemo(() => {
    if (!loaded) return [];
    return ids.filter((id) => !runs.some((run) => run.id === id));
  }, [loaded, ids, runs]);
  // While the next page loads, runs found missing before are not requested again.
  const missing = useSettled(notFound, loaded);
  const existing = useMemo(() => ids.filter((id) => !missing.includes(id)), [ids, missing]);
  return { matching, wanted, ids, existing, runs, missing, error, refetch };
}

type Hidden = ReadonlySet<string>;

/** What is not drawn. Which rows are the best is decided once for the same runs: lines do not come and go as they train. */
function useHidden(rows: readonly Row[] | undefined, hidden: string | undefined, key: string): Hidden {
  const [first, setFirst] = useState<{ key: string; hidden: Hidden }>();
  const now = useMemo(() => hiddenOf(rows ?? [], hidden), [rows, hidden]);
  if (hidden !== undefined) return now;
  if (first?.key === key) return first.hidden;
  if (rows !== undefined && rows.length > 0) setFirst({ key, hidden: now });
  return now;
}

/** Fields where keys are typed. */
const TAKES_KEYS = 'input:not([type=radio]), textarea, select, [contenteditable]';

type Props = {
  search: Search;
  onSearch: (search: Search, replace?: boolean) => void;
  /** The title. */
  head: ReactNode;
};

/** Several runs, or configs over seeds: their list, the verdict, curves, statistics, settings and replays. */
export function CompareView({ search, onSearch, head }: Props) {
  const finder = useRef<HTMLInputElement>(null);
  const { matching, wanted, ids, existing, runs, missing, error, refetch } = useCompared(search);
  useStepTaken('compare', runs.length > 1);
  const grouped = search.group === 'seed';
  const { centre = DEFAULT_SPREAD.centre, interval = DEFAULT_SPREAD.interval } = search;
  const seeds = search.seeds ?? false;
  const spread = useMemo(() => possible({ centre, interval, seeds }), [centre, interval, seeds]);
  const names = useNames(runs);
  const titles = useSettingTitles(runs);
  const styles = useMemo(() => parseRunStyles(ids, search.styles), [ids, search.styles]);
  const groupStyles = useMemo(() => parseGroupStyles(search.group_styles), [search.group_styles]);
  const view = {
    score: search.score ?? 'training',
    at: search.at ?? 'common',
    threshold: search.threshold,
    protocol: search.protocol,
    baseline: search.baseline,
    pairs: search.pairs,
  } as const;
  const scoredBy = runs.map(({ return_metric }) => return_metric ?? '').join(' ');
  const training = runs.some(({ state }) => !hasEnded(state));
  const trainedS = runs.reduce(
    (sum, { state, wall_time_s }) => sum + (hasEnded(state) ? 0 : (wall_time_s ?? 0)),
    0,
  );
  const all = useQuery(comparisonQuery({ runs: runs.map(({ id }) => id), ...view, training }));
  const groups = useMemo(() => all.data?.groups ?? [], [all.data]);
  const stylesOfGroups = useMemo(
    () =>
      distinctStyles(
        groups.map(({ id }) => id),
        groupStyles,
      ),
    [groups, groupStyles],
  );

  const groupOf = useMemo(
    () => new Map(groups.flatMap(({ id, runs: members }) => members.map(({ run }) => [run, id] as const))),
    [groups],
  );
  const ranked = useMemo(
    () => (grouped ? all.data && rowsOfGroups(all.data, all.data, runs) : rowsOfRuns(runs, names)),
    [grouped, all.data, runs, names],
  );
  const hidden = useHidden(ranked, search.hidden, `${grouped} ${existing.join(' ')}`);
  /** Configs of which anything is drawn: they are compared with all their runs here, not with those of drawn lines. */
  const compared = useMemo(() => {
    const isDrawn = ({ id }: Run): boolean => !hidden.has(grouped ? (groupOf.get(id) ?? '') : id);
    const drawn = new Set(runs.filter(isDrawn).map(({ id }) => groupOf.get(id)));
    const kept = runs.filter(({ id }) => drawn.has(groupOf.get(id)));
    return kept.length > 0 ? kept : runs;
  }, [runs, hidden, grouped, groupOf]);
  const request = { runs: compared.map(({ id }) => id), ...view, training };
  const shown = useQuery({ ...comparisonQuery(request), enabled: all.data !== undefined && runs.length > 0 });
  /** In the names that the list has. */
  const comparison = useMemo(() => {
    const nameOf = new Map(groups.map(({ id, name }) => [id, name]));
    return (
      shown.data && {
        ...shown.data,
        groups: shown.data.groups.map((group) => ({ ...group, name: nameOf.get(group.id) ?? group.name })),
      }
    );
  }, [shown.data, groups]);
  const rows = useMemo(
    () => (grouped && all.data ? rowsOfGroups(all.data, comparison ?? all.data, runs) : (ranked ?? [])),
    [grouped, all.data, comparison, runs, ranked],
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
  const visible = useMemo(() => runs.filter(({ id }) => !notDrawn.has(id)), [runs, notDrawn]);
  const dots = useMemo(
    () => styleParameters(new Map(visible.map(({ id }) => [id, styles.get(id) ?? 0]))),
    [visible, styles],
  );
  /** Over seeds the best run of each config plays. */
  const playing = useMemo(
    () =>
      grouped
        ? rows.flatMap(({ id, runs: members }) =>
            hidden.has(id)
              ? []
              : members.toSorted((a, b) => (b.score ?? -Infinity) - (a.score ?? -Infinity)).slice(0, 1),
          )
        : visible,
    [grouped, rows, hidden, visible],
  );
  const pins = useMemo(() => new Set(search.pins?.split(',') ?? []), [search.pins]);
  /** Of runs, only those of a config that was chosen: by default the first is compared with. */
  const baselines = useMemo(() => {
    const configs = comparison?.baselines ?? [];
    if (grouped) return new Set(groups.length > 1 ? configs : []);
    const chosen = search.baseline !== undefined && configs.includes(search.baseline);
    return new Set(runs.flatMap(({ id }) => (chosen && groupOf.get(id) === search.baseline ? [id] : [])));
  }, [comparison, grouped, groups, groupOf, runs, search.baseline]);
  const bold = search.baseline === undefined ? undefined : baselines;
  const environments = useMemo(() => [...new Set(visible.map(({ environment }) => environment))], [visible]);
  const panels = useMemo(() => panelsOf(search), [search]);
  const isListed = search.list !== 'hidden';
  const isKnown = rows.length > 0 && (comparison !== undefined || all.error !== null);
  // The list stands above the charts, which must not move when it loads.
  const isNarrow = useMediaQuery('(max-width: 1000px)', false, { getInitialValueInEffect: false });
  const hasPanels = existing.length > 0 && (isKnown || !isNarrow || !isListed);

  const page: PanelPage = {
    rows,
    grouped,
    runs: existing,
    visible,
    compared,
    environments,
    hidden,
    notDrawn,
    onHidden: (to) => change({ hidden: to.join(',') || NONE_HIDDEN }, true),
    spread,
    styles: grouped ? stylesOfGroups : styles,
    groupStyles: stylesOfGroups.size > 0 ? formatGroupStyles(stylesOfGroups).split(',') : [],
    verdict: { score: view.score, at: view.at, protocol: view.protocol },
    titles,
  };

  const change = (to: { [K in keyof Search]?: Search[K] | undefined }, replace = false): void => {
    onSearch(defined({ ...search, ...to }), replace);
  };
  /** A run that is added gets the first free style, the others keep theirs. */
  const setRuns = (next: readonly string[]): void => {
    const keptHidden = search.hidden
      ?.split(',')
      .filter((id) => !wanted.includes(id) || next.includes(id))
      .join(',');
    change({
      q: undefined,
      runs: [...new Set(next)].join(',') || undefined,
      hidden: keptHidden === '' ? NONE_HIDDEN : keptHidden,
      styles: formatRunStyles(distinctStyles(next, styles)) || undefined,
    });
  };
  const add = (id: string): void => setRuns([...wanted, id]);
  const remove = (removed: readonly string[]): void => setRuns(wanted.filter((id) => !removed.includes(id)));
  const toggleList = (): void => change({ list: isListed ? 'hidden' : 'beside' }, true);
  useWindowEvent('keydown', (event) => {
    if (event.key !== '[' || event.ctrlKey || event.metaKey || isDialogOpen()) return;
    if (event.target instanceof Element && event.target.matches(TAKES_KEYS)) return;
    toggleList();
  });

  const verdict = comparison && (
    <VerdictPanel comparison={comparison} nHidden={groups.length - comparison.groups.length} />
  );
  const find = <RunFinder compared={wanted} onAdd={add} finder={finder} />;
  return (
    <div className="page" style={{ display: 'grid', gap: 12 }}>
      <div className={classes.top}>
        {head}
        <span className="muted">{grouped && all.data ? all.data.shared_name : names.shared}</span>
        <span className="grow" />
        {playing.length === 2 && (
          <ButtonLink
            variant="default"
            to="/diff"
            search={{ runs: playing.map(({ id }) => id).join(',') }}
            title={
              grouped
                ? 'What differs between the best runs of the two configs'
                : 'What differs between the two runs'
            }
          >
            Diff
          </ButtonLink>
        )}
        {existing.length > 0 && <SaveAsStudy source={{ runs: existing }} refusal={studyRefusal(runs)} />}
      </div>
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
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {matching.error && <Problem error={matching.error} invalid="Invalid filter" />}
      {matching.isPending && <Loading label="Loading the runs" lines={8} />}
      {existing.length === 0 && missing.length === 0 && !matching.isPending && (
        <div className="panel">
          <NothingCompared onRuns={setRuns} />
          {find}
        </div>
      )}
      {existing.length + missing.length > 0 && (
        <CurveViewProvider
          search={{ ...search, log: logOf(panels) }}
          runs={runs}
          onSearch={({ log, ...to }) =>
            change({ ...to, ...searchOfPanels(withLog(panels, log)) }, to.x === search.x)
          }
          styles={drawnStyles}
          bold={bold}
        >
          <div className={classes.workspace} data-listed={isListed || undefined}>
            {isListed && (
              <aside className={classes.aside} aria-label="Compared">
                <SeriesList
                  rows={rows}
                  isLoading={rows.length === 0 && existing.length > 0 && all.error === null}
                  grouped={grouped}
                  onGrouped={(to) => change({ group: to ? 'seed' : undefined, hidden: undefined })}
                  sort={search.sort ?? '-score'}
                  onSort={(sort) => change({ sort: sort === '-score' ? undefined : sort }, true)}
                  styles={grouped ? stylesOfGroups : styles}
                  onStyle={(id, style) =>
                    change(
                      grouped
                        ? { group_styles: formatGroupStyles(restyled(stylesOfGroups, id, style)) }
                        : { styles: formatRunStyles(restyled(styles, id, style)) || undefined },
                      true,
                    )
                  }
                  hidden={hidden}
                  onHidden={(to) => change({ hidden: to && (to.join(',') || NONE_HIDDEN) }, true)}
                  pins={pins}
                  onPins={(to) => change({ pins: to.join(',') || undefined }, true)}
                  baselines={baselines}
                  onBaseline={
                    groups.length > 1
                      ? (id) => change({ baseline: grouped ? id : groupOf.get(id), pairs: undefined }, true)
                      : undefined
                  }
                  onAdd={add}
                  onRemove={(row) => remove(row.runs.map(({ id }) => id))}
                  missing={missing.filter((id) => ids.includes(id))}
                  onRemoveMissing={(id) => remove([id])}
                  finder={
                    <Popover position="bottom-start" withinPortal trapFocus returnFocus>
                      <Popover.Target>
                        <Button size="compact-xs" variant="default">
                          Add runs
                        </Button>
                      </Popover.Target>
                      <Popover.Dropdown p={8} aria-label="Add runs">
                        {find}
                      </Popover.Dropdown>
                    </Popover>
                  }
                />
                {isKnown && verdict}
              </aside>
            )}
            <div className={classes.panels}>
              {!hasPanels && existing.length > 0 && <Loading label="Loading the charts" lines={8} />}
              {hasPanels && (
                <CompareCharts
                  runs={existing}
                  scoredBy={scoredBy}
                  trainedS={trainedS}
                  environments={environments}
                  panels={panels}
                  onPanels={(to, tab) =>
                    change(
                      { ...searchOfPanels(to), ...(tab === undefined ? {} : { tab: tab || undefined }) },
                      // Only moved or resized: each press of an arrow key does so by one place.
                      to.length === panels.length,
                    )
                  }
                  tab={search.tab}
                  onTab={(tab) => change({ tab }, true)}
                  page={page}
                  onSpread={({ centre, interval, seeds }) =>
                    change({
                      centre: centre === DEFAULT_SPREAD.centre ? undefined : centre,
                      interval: interval === DEFAULT_SPREAD.interval ? undefined : interval,
                      seeds: seeds || undefined,
                    })
                  }
                  hidden={notDrawn}
                />
              )}
              {!isListed && runs.length > 0 && <div className={classes.reserved}>{verdict}</div>}
              {hasPanels && runs.length > 0 && search.tab === undefined && (
                <Statistics
                  runs={compared}
                  request={request}
                  comparison={comparison}
                  error={all.error ?? shown.error}
                  onRetry={() => void all.refetch()}
                  styles={grouped ? stylesOfGroups : undefined}
                  onStyle={(group, style) =>
                    change({ group_styles: formatGroupStyles(restyled(stylesOfGroups, group, style)) }, true)
                  }
                  view={view}
                  onAdd={(more) => setRuns([...wanted, ...more])}
                  onLeaveOut={(run) => remove([run])}
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
                      {!panels.some(({ kind }) => kind === 'scatter') && (
                        <ScoreScatter
                          runs={visible}
                          styles={grouped ? drawnStyles : dots}
                          grouped={grouped}
                          titles={titles}
                          setting={search.setting}
                          onSetting={(setting) => change({ setting }, true)}
                          score={search.drawn ?? 'score'}
                          onScore={(score) => change({ drawn: score === 'score' ? undefined : score }, true)}
                        />
                      )}
                      <section className={classes.statistics}>
                        <h2 className="section-title">Runs</h2>
                        <ScoresTable runs={visible} names={names} />
                      </section>
                      <section className={classes.statistics}>
                        <h2 className="section-title">Config diff</h2>
                        <ConfigDiffTable runs={visible} titles={titles} />
                      </section>
                      <section className={classes.statistics}>
                        <h2 className="section-title">Side-by-side replay</h2>
                        <SideBySide
                          runs={playing}
                          nameOf={(run) =>
                            rows.find(({ id }) => id === groupOf.get(run.id))?.name ?? names.of(run)
                          }
                        />
                      </section>
                    </>
                  }
                />
              )}
            </div>
          </div>
        </CurveViewProvider>
      )}
    </div>
  );
}
