import games from './games.json';

/** Files, not inline data: a table loads them as it scrolls. Created by `workers.engine.envs.thumbnails`. */
const IMAGES = import.meta.glob<string>('../assets/environments/*.webp', {
  eager: true,
  query: '?url&no-inline',
  import: 'default',
});

const CLIPS = import.meta.glob<string>('../assets/clips/*.mp4', {
  eager: true,
  query: '?url&no-inline',
  import: 'default',
});

/** The URL of some seconds of an agent's play; few environments have one. Created by `make demo`. */
export const environmentClip = (id: string): string | undefined =>
  CLIPS[`../assets/clips/${id.replaceAll('/', '-')}.mp4`];

/** The URL of an environment's image; custom environments have none. */
export const environmentImage = (id: string): string | undefined =>
  IMAGES[`../assets/environments/${id.replaceAll('/', '-')}.webp`];

const GAME_TITLES: Readonly<Record<string, string>> = games;

/** A game's title, such as Q*bert for `ALE/Qbert-v5`; another environment's id without version, such as `CartPole`. */
export function shortEnvironmentName(id: string): string {
  const name = id.replace(/-v\d+$/, '');
  const game = /^ALE\/(\w+)$/.exec(name)?.[1];
  if (game === undefined) return name;
  return GAME_TITLES[game] ?? game.replace(/([a-z])(?=[A-Z])/g, '$1 ');
}

/** Whether people can play an environment: keys stand for discrete actions, and custom ones are not offered. */
export const isPlayable = ({ actions, family }: { actions: string; family: string }): boolean =>
  actions === 'discrete' && family !== 'custom';

type HostFacts = { alive: boolean; environments: readonly string[] };

/** Why no connected host can run an environment; null if one can, or while the hosts are unknown. */
export function unavailableReason(
  environment: { id: string; title: string },
  hosts: readonly HostFacts[] | undefined,
): string | null {
  const connected = hosts?.filter(({ alive }) => alive);
  if (!connected || connected.some(({ environments }) => environments.includes(environment.id))) return null;
  if (connected.length === 0) return 'No host is connected.';
  const none =
    connected.length === 1
      ? 'The connected host cannot'
      : `None of the ${connected.length} connected hosts can`;
  return `${none} run ${environment.title}.`;
}

type Extra = { title: string; extra: string | null };

/** Why no host can run an environment or algorithm: each lacks an extra; null if one has it, or while hosts are unknown. */
export function missingExtra(
  { title, extra }: Extra,
  hosts: readonly { missing_extras: readonly string[] }[] | undefined,
): string | null {
  if (!extra || !hosts?.length) return null;
  if (!hosts.every(({ missing_extras }) => missing_extras.includes(extra))) return null;
  return `${title} needs callboard[${extra}], which no host has. On one: pip install 'callboard[${extra}]'.`;
}

type Named = { id: string; title: string; family: string };

/** The environments whose id, title and family together contain every typed word. */
export function findEnvironments<E extends Named>(environments: readonly E[], typed: string): E[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return environments.filter(({ id, title, family }) => {
    const text = `${id} ${title} ${family}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

type Scored<S> = { published: readonly S[]; evaluation_protocols: readonly string[] };

/** The published scores by protocols under which agents can be evaluated here: only these are comparable. */
const comparableScores = <S extends { protocol: string }>({
  published,
  evaluation_protocols,
}: Scored<S>): S[] => published.filter(({ protocol }) => evaluation_protocols.includes(protocol));

/** The comparable scores of random play and of a human by one protocol, from no-op starts if there are any. */
export function referenceScores<S extends { protocol: string; label: string }>(
  environment: Scored<S> | undefined,
): S[] {
  const levels = (environment ? comparableScores(environment) : []).filter(
    ({ label }) => label === 'random' || label === 'human',
  );
  const protocol = (levels.find((level) => level.protocol === 'noop_starts') ?? levels[0])?.protocol;
  return ['random', 'human'].flatMap(
    (label) => levels.find((level) => level.label === label && level.protocol === protocol) ?? [],
  );
}
