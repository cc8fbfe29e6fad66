/**
 * Every query key in one place.
 *
 * A key begins with what it shows: `[kind, id, parts, …]`. `kind` is that of the events and `id` that of one thing, an
 * array for several, or null for a list of all. `parts` names the parts of the thing that are shown, as events name what
 * has changed; `series` includes `series/loss`; an empty array stands for what changes only with the whole. Without
 * `parts` (any other value in this place) a key follows every event of the thing itself. A query that follows events of
 * other things as well declares their keys by `meta: { dependsOn }`.
 *
 * What never changes, is polled, or only depends on others begins with `UNWATCHED`: no gap in the events makes it old.
 */
export type Key = readonly unknown[];

declare module '@tanstack/react-query' {
  // eslint-disable-next-line @typescript-eslint/consistent-type-definitions -- only an interface can be extended
  interface Register {
    queryMeta: {
      /** The beginnings of further keys, perhaps of things that the data names, whose events change the query too. */
      dependsOn?: (data: unknown) => readonly Key[];
      /** It shows little more after a few seconds of training. */
      slow?: boolean;
    };
  }
}

export const UNWATCHED = 'unwatched';

type Parts = string | readonly string[];

/** What changes the evaluations of a run: the engine's own, and jobs. */
const EVALUATED = ['evaluations', 'evaluation'] as const;

const sectionsOf = (metrics: readonly string[]) => [
  ...new Set(metrics.map((metric) => `series/${metric.split('/')[0] ?? ''}`)),
];

export const keys = {
  runs: (search: unknown) => ['run', null, search] as const,
  /** Of lists of runs. */
  allRuns: () => ['run', null] as const,
  deletedRuns: () => ['run', null, 'deleted'] as const,
  runGroups: (search: unknown) => ['run', null, 'groups', search] as const,
  run: (id: string) => ['run', id] as const,
  runResource: (id: string, parts: Parts, ...rest: Key) => ['run', id, parts, ...rest] as const,
  evaluations: (run: string) => ['run', run, EVALUATED] as const,
  marks: (run: string) => ['run', run, [...EVALUATED, 'step_notes']] as const,
  episodes: (run: string, ...rest: Key) => ['run', run, ['episodes', 'video'], ...rest] as const,
  sentVideos: (run: string, ...rest: Key) => ['run', run, ['videos', 'encode'], ...rest] as const,
  seriesNames: (run: string) => ['run', run, 'metrics', 'series-names'] as const,
  /** Of what follows the points of metrics. */
  series: (runs: readonly string[], metrics: readonly string[], ...rest: Key) =>
    ['run', runs, sectionsOf(metrics), metrics, ...rest] as const,
  /** Of what the runs of a view are called. */
  names: (runs: readonly string[], beside: Key) => ['run', runs, [], 'names', beside] as const,
  metrics: (runs: readonly string[]) => ['run', runs, 'metrics'] as const,
  /** Scores of training change all the time: they are refetched at an interval, and at the end. */
  comparison: (runs: readonly string[], score: string, ...rest: Key) =>
    ['run', runs, score === 'evaluation' ? EVALUATED : [], 'comparison', score, ...rest] as const,
  runDiff: (a: string, b: string) => ['run', [a, b], [], 'diff'] as const,
  views: () => ['view', null] as const,
  view: (id: string) => ['view', id] as const,
  namedView: (name: string, project: string, by: string | undefined) =>
    ['view', null, 'named', name, project, by] as const,
  viewStates: (id: string) => ['view', id, 'states'] as const,
  hosts: () => ['host', null] as const,
  sweeps: () => ['sweep', null] as const,
  sweep: (id: string) => ['sweep', id] as const,
  papers: (...rest: Key) => ['study', null, ...rest] as const,
  study: (id: string, ...rest: Key) => ['study', id, ...rest] as const,
  allAlerts: () => ['alert', null] as const,
  alerts: (unread: boolean) => ['alert', null, unread] as const,
  unreadAlerts: () => ['alert', null, true, 'latest'] as const,
  allAlertRules: () => ['alert_rule', null] as const,
  /** Of all rules, or of those about a run. */
  alertRules: (run?: string) => ['alert_rule', null, { run }] as const,
  alertTargets: () => ['alert_target', null] as const,

  documentation: () => [UNWATCHED, 'documentation'] as const,
  bulkPreview: (...request: Key) => [UNWATCHED, 'bulk-preview', ...request] as const,
  estimate: (fields: unknown) => [UNWATCHED, 'estimate', fields] as const,
  projects: () => [UNWATCHED, 'projects'] as const,
  runFields: () => [UNWATCHED, 'run-fields'] as const,
  runMetrics: (runs: readonly string[], metrics: readonly string[]) =>
    [UNWATCHED, 'run-metrics', runs, metrics] as const,
  sparklines: (runs: readonly string[]) => [UNWATCHED, 'sparklines', runs] as const,
  palette: () => [UNWATCHED, 'palette'] as const,
  figure: (...request: Key) => [UNWATCHED, 'figure', ...request] as const,
  exported: (...request: Key) => [UNWATCHED, 'exported', ...request] as const,
  thumbnail: (id: string, retries: number) => [UNWATCHED, 'thumbnail', id, retries] as const,
  mediaItem: (id: string, ...rest: Key) => [UNWATCHED, 'media', id, ...rest] as const,
  trace: (episode: string) => [UNWATCHED, 'trace', episode] as const,
  algorithms: () => [UNWATCHED, 'algorithms'] as const,
  environments: () => [UNWATCHED, 'environments'] as const,
  commands: () => [UNWATCHED, 'commands'] as const,
  environment: (id: string) => [UNWATCHED, 'environment', id] as const,
  hostSilence: () => [UNWATCHED, 'host-silence'] as const,
  readiness: () => [UNWATCHED, 'readiness'] as const,
  scores: (request: unknown) => [UNWATCHED, 'scores', request] as const,
  playSession: (id: string) => [UNWATCHED, 'play', id] as const,
  playSessions: () => [UNWATCHED, 'play'] as const,
  recordings: () => [UNWATCHED, 'recordings'] as const,
  humanReferences: () => [UNWATCHED, 'human-references'] as const,
  recording: (id: string, ...rest: Key) => [UNWATCHED, 'recording', id, ...rest] as const,
  account: () => [UNWATCHED, 'account'] as const,
  users: () => [UNWATCHED, 'account', 'users'] as const,
  tokens: () => [UNWATCHED, 'account', 'tokens'] as const,
  shares: (everyone: boolean) => [UNWATCHED, 'shares', everyone] as const,
  sessions: () => [UNWATCHED, 'account', 'sessions'] as const,
  audit: (filter: unknown) => [UNWATCHED, 'audit', filter] as const,
  auditActions: () => [UNWATCHED, 'audit-actions'] as const,
  me: () => [UNWATCHED, 'me'] as const,
  loginMethods: () => [UNWATCHED, 'login-methods'] as const,
  startSets: () => [UNWATCHED, 'start-sets'] as const,
  storage: () => [UNWATCHED, 'storage'] as const,
  storageRuns: (limit: number) => [UNWATCHED, 'storage', 'runs', limit] as const,
  retention: () => [UNWATCHED, 'retention'] as const,
};
