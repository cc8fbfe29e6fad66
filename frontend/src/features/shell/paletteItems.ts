/** What the palette offers for a text. */
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useLocation, useNavigate } from '@tanstack/react-router';
import { useDeferredValue, useMemo } from 'react';
import { documentationQuery } from '@/api/documentation';
import { useNames } from '@/api/names';
import { type Run, runsQuery } from '@/api/runs';
import { viewsQuery } from '@/api/views';
import { usePlacedPages } from '@/components/placedPages';
import { shortcutsAt } from '@/components/shortcutTable';
import { served } from '@/lib/base';
import { shortEnvironmentName } from '@/lib/environments';
import { useTheme } from './theme';

/** Where the palette leads, as it is stored: an address of the pages, or of the documentation. */
export type Place = { label: string; description?: string | undefined } & (
  { to: string; params?: Record<string, string>; search?: Record<string, unknown> } | { help: string }
);

export type Item = {
  key: string;
  group: 'Recent' | 'Pages' | 'Actions' | 'Views' | 'Runs' | 'Documentation';
  label: string;
  description?: string | undefined;
  keys?: readonly string[];
  place?: Place;
  /** The key that does it. */
  press?: string | undefined;
  act?: () => void;
};

const MAX_RUNS = 8;
const MAX_OTHERS = 6;
/** Shorter texts are in too many titles. */
const MIN_DOCUMENTED = 2;

export const storedOf = (place: Place): string => JSON.stringify(place);

/** A stored place; other versions may have stored something else. */
function placeOf(stored: string): Place | undefined {
  try {
    const place = JSON.parse(stored) as Record<string, unknown>;
    const isPlace = typeof place.to === 'string' && place.to.startsWith('/');
    const isHelp = typeof place.help === 'string' && place.help.startsWith(served('/help/'));
    return typeof place.label === 'string' && (isPlace || isHelp) ? (place as Place) : undefined;
  } catch {
    return undefined;
  }
}

/** Goes to a place. */
export function useGo() {
  const navigate = useNavigate();
  return (place: Place): void => {
    if ('help' in place) location.assign(place.help);
    else void navigate({ to: place.to, params: place.params, search: place.search } as never);
  };
}

/** How well a text matches: the less, the better; undefined if a word is missing. */
function rank(words: readonly string[], { label, description = '' }: Item): number | undefined {
  const name = label.toLowerCase();
  const text = `${name} ${description.toLowerCase()}`;
  if (!words.every((word) => text.includes(word))) return undefined;
  if (words.length === 0 || name.startsWith(words.join(' '))) return 0;
  return words.every((word) => name.includes(word)) ? 1 : 2;
}

/** The items that have all words, the best first. */
function matching(words: readonly string[], items: readonly Item[], limit = Infinity): Item[] {
  return items
    .flatMap((item) => {
      const order = rank(words, item);
      return order === undefined ? [] : [{ item, order }];
    })
    .toSorted((a, b) => a.order - b.order)
    .slice(0, limit)
    .map(({ item }) => item);
}

const itemOf = (group: Item['group'], place: Place): Item => ({
  key: `${group} ${storedOf(place)}`,
  group,
  label: place.label,
  description: place.description,
  place,
});

/** Pages, actions of this page, views, runs and documentation; what was chosen last comes first. */
export function useItems(query: string, recent: readonly string[], isAdmin: boolean): Item[] {
  const text = useDeferredValue(query.trim());
  const words = useMemo(() => text.toLowerCase().split(/\s+/).filter(Boolean), [text]);
  const places = recent.flatMap((stored) => placeOf(stored) ?? []);
  const pages = usePages(isAdmin);
  const views = useQuery(viewsQuery).data ?? [];
  const items = [
    ...matching(
      words,
      places.map((place) => itemOf('Recent', place)),
    ),
    ...matching(
      words,
      pages.map((place) => itemOf('Pages', place)),
    ),
    ...matching(words, useActions()),
    ...matching(
      words,
      views.map(({ id, name, project, mine, owner }) =>
        itemOf('Views', {
          label: name ?? 'View',
          description: [project, mine ? undefined : `by ${owner}`].filter(Boolean).join(', '),
          to: '/w/$view',
          params: { view: name ?? id },
          search: { project: project ?? undefined, by: mine ? undefined : owner },
        }),
      ),
      MAX_OTHERS,
    ),
    ...useRunPlaces(text).map((place) => itemOf('Runs', place)),
    ...matching(
      words,
      useChapters(text).map((place) => itemOf('Documentation', place)),
      MAX_OTHERS,
    ),
  ];
  const shown = new Set<string>();
  return items.filter(({ place, label }) => {
    const address = place === undefined ? label : JSON.stringify({ ...place, label: '', description: '' });
    return shown.size < shown.add(address).size;
  });
}

/** The pages without parameters. */
function usePages(isAdmin: boolean): Place[] {
  const settings = usePlacedPages('settings').filter(({ admin }) => isAdmin || !admin);
  return [
    ...usePlacedPages('nav').map(({ to, label }) => ({ to, label })),
    ...usePlacedPages('palette').map(({ to, label }) => ({ to, label })),
    ...settings.map(({ to, label }) => ({ to, label, description: 'Settings' })),
    { help: served('/help/'), label: 'Documentation' },
  ];
}

/** What the keys of this page do, and the theme. */
function useActions(): Item[] {
  const path = useLocation({ select: ({ pathname }) => pathname });
  const { label, toggle } = useTheme();
  const keyed = shortcutsAt(path).map(({ action, keys, press }): Item => ({
    key: `key ${action}`,
    group: 'Actions',
    label: action,
    keys,
    press,
  }));
  return [...keyed, { key: 'theme', group: 'Actions', label, act: toggle }];
}

const NO_RUNS: readonly Run[] = [];

/** The runs that the query language of the search finds, by what differs among them. */
function useRunPlaces(text: string): Place[] {
  const { data, error } = useInfiniteQuery({
    ...runsQuery({ filter: text, limit: MAX_RUNS, spec: false }),
    enabled: text !== '',
    placeholderData: keepPreviousData,
    retry: false, // an unfinished filter is an error
  });
  const runs = text === '' || error ? NO_RUNS : (data?.pages[0]?.items ?? NO_RUNS);
  const names = useNames(runs);
  return runs.map((run) => {
    const label = names.of(run) || run.name;
    const others = [run.name, shortEnvironmentName(run.environment), run.state];
    const description = others.filter((other) => other !== label).join(' · ');
    return { label, description, to: '/runs/$runId', params: { runId: run.id } };
  });
}

/** The titles of the documentation. */
function useChapters(text: string): Place[] {
  const { data = [] } = useQuery({ ...documentationQuery, enabled: text.length >= MIN_DOCUMENTED });
  if (text.length < MIN_DOCUMENTED) return [];
  return data.map(({ title, page, address }) => ({ label: title, description: page, help: address }));
}
