/** The scripts of the pages, by their addresses, without the router. */

type Load<T> = () => Promise<T>;

/** Loads a script and its styles when first asked; after a failure, anew. */
function once<T>(load: Load<T>): Load<T> {
  let loaded: Promise<T> | undefined;
  return () =>
    (loaded ??= load().catch((error: unknown) => {
      loaded = undefined;
      throw error;
    }));
}

/** The page of each path of the router. */
export const PAGES = {
  '/login': once(() => import('@/routes/LoginPage')),
  '/': once(() => import('@/routes/RunsPage')),
  '/deleted': once(() => import('@/routes/DeletedPage')),
  '/new': once(() => import('@/routes/NewRunPage')),
  '/runs/$runId': once(() => import('@/routes/RunPage')),
  '/runs/$runId/episodes/$episodeId': once(() => import('@/routes/ReplayPage')),
  '/compare': once(() => import('@/routes/ComparePage')),
  '/w/$view': once(() => import('@/routes/ViewPage')),
  '/sweeps': once(() => import('@/routes/SweepsPage')),
  '/sweeps/$sweepId': once(() => import('@/routes/SweepPage')),
  '/papers': once(() => import('@/routes/PapersPage')),
  '/studies/$studyId': once(() => import('@/routes/StudyPage')),
  '/scores': once(() => import('@/routes/ScoresPage')),
  '/play': once(() => import('@/routes/PlayPage')),
  '/play/$sessionId': once(() => import('@/routes/PlaySessionPage')),
  '/play/recordings/$recordingId': once(() => import('@/routes/RecordingPage')),
  '/alerts': once(() => import('@/routes/AlertsPage')),
  '/machines': once(() => import('@/routes/HostsPage')),
  '/settings': once(() => import('@/routes/AccountPage')),
  '/settings/tokens': once(() => import('@/routes/TokensPage')),
  '/settings/users': once(() => import('@/routes/UsersPage')),
  '/settings/storage': once(() => import('@/routes/StoragePage')),
  '/settings/audit': once(() => import('@/routes/AuditPage')),
  '/settings/shortcuts': once(() => import('@/routes/ShortcutsPage')),
};

/** The frame around the pages of the settings. */
export const loadSettingsFrame = once(() => import('@/features/account/SettingsFrame'));

const segments = (path: string): string[] => path.split('/').filter(Boolean);

/** Whether an address has a path of the router, whose parameters begin with `$`. */
function hasPath(address: string, path: string): boolean {
  const wanted = segments(path);
  const given = segments(address);
  return (
    wanted.length === given.length &&
    wanted.every((segment, n) => segment.startsWith('$') || segment === given[n])
  );
}

/** What the page at an address needs, in the order in which it is shown. */
export function scriptsOf(address: string): Load<unknown>[] {
  const page = Object.entries(PAGES).find(([path]) => hasPath(address, path))?.[1];
  if (page === undefined) return [];
  return segments(address)[0] === 'settings' ? [loadSettingsFrame, page] : [page];
}
