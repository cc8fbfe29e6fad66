import { queryOptions } from '@tanstack/react-query';
import { served } from '@/lib/base';
import { keys } from './keys';

/** A page of the documentation, or a section of it. */
type Chapter = {
  title: string;
  /** The page's title; undefined for a page itself. */
  page: string | undefined;
  address: string;
};

type Entry = { location: string; title: string };

const plain = (text: string): string =>
  /[&<]/.test(text) ? new DOMParser().parseFromString(text, 'text/html').body.textContent.trim() : text;

/** The titles of the documentation, from the index of its own search; empty where it was not built. */
export const documentationQuery = queryOptions({
  queryKey: keys.documentation(),
  queryFn: async ({ signal }): Promise<readonly Chapter[]> => {
    const answer = await fetch(served('/help/search/search_index.json'), { signal });
    if (!answer.ok) return [];
    const { docs } = (await answer.json()) as { docs: readonly Entry[] };
    const titles = new Map(docs.map(({ location, title }) => [location, title]));
    return docs.map(({ location, title }) => {
      const [page = '', section] = location.split('#');
      return {
        title: plain(title),
        page: section === undefined ? undefined : plain(titles.get(page) ?? ''),
        address: served(`/help/${location}`),
      };
    });
  },
  staleTime: Infinity,
});
