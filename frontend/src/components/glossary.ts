import entries from '@/lib/glossary.json';

export type TermId = keyof typeof entries;

type Entry = { term: string; text: string; page: string; also?: string[] };

const GLOSSARY: Record<string, Entry> = entries;

const IDS_BY_NAME = new Map(
  Object.entries(GLOSSARY).flatMap(([id, { term, also = [] }]) =>
    [term, ...also].map((name) => [name.toLowerCase(), id] as const),
  ),
);

/** The entry with this id, or, without one, the entry whose name or other name this is. */
export const entryOf = (id: string | undefined, name: string): Entry | undefined =>
  GLOSSARY[id ?? IDS_BY_NAME.get(name.toLowerCase()) ?? ''];
