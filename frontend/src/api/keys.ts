/** Every query's key, in one place: what belongs to a run starts with its id. */
export const keys = {
  runs: (search: unknown) => ['runs', search] as const,
  allRuns: () => ['runs'] as const,
  run: (id: string) => ['run', id] as const,
  ofRun: (id: string, part: string, ...rest: readonly unknown[]) => ['run', id, part, ...rest] as const,
  series: (runs: readonly string[], ...rest: readonly unknown[]) => ['series', runs, ...rest] as const,
  trial: (action: string, ids: readonly string[]) => ['trial', action, ids] as const,
  sparklines: (runs: readonly string[]) => ['sparklines', runs] as const,
  figure: (...request: readonly unknown[]) => ['figure', ...request] as const,
  trace: (episode: string) => ['trace', episode] as const,
  algorithms: () => ['catalog', 'algorithms'] as const,
  environments: () => ['catalog', 'environments'] as const,
  hosts: () => ['hosts'] as const,
  account: () => ['account'] as const,
  users: () => ['account', 'users'] as const,
  tokens: () => ['account', 'tokens'] as const,
  me: () => ['me'] as const,
};
