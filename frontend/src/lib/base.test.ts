import { expect, it, vi } from 'vitest';

const sources = import.meta.glob<string>('../**/*.{ts,tsx}', {
  query: '?raw',
  import: 'default',
  eager: true,
});

/** An address of the service or of a file of the pages, in quotes. */
const ADDRESS = /['"`]\/(api\/v1|help|docs|login|assets|favicon|color-scheme)\b/g;
/** What an address may follow: calls that put the base path before it, types, and addresses of the router. */
const WITH_BASE =
  /(served\(|api\.[A-Z]+\(|paths\[|sourceAt\([^`]*| as |\bto[:=] ?|pathname [!=]== |createFileRoute\()\s*$/;
/** Files whose addresses nothing requests. */
const NAMES = [
  '../api/client.ts',
  '../api/generated.ts',
  '../routeTree.gen.ts',
  '../components/chart/export/source.ts',
];

it('nothing asks for an address without the base path', () => {
  const bare = Object.entries(sources)
    .filter(([path]) => !path.includes('.test.') && !NAMES.includes(path))
    .flatMap(([path, text]) =>
      [...text.matchAll(ADDRESS)]
        .filter(({ index }) => !WITH_BASE.test(text.slice(Math.max(0, index - 120), index)))
        .map(({ index }) => `${path}: ${text.slice(index, index + 40).split('\n')[0] ?? ''}`),
    );
  expect(Object.keys(sources).length).toBeGreaterThan(200);
  expect(bare).toEqual([]);
});

it('the page names the base path', async () => {
  vi.resetModules();
  document.head.innerHTML = '<meta name="callboard-base" content="/lab/callboard" />';
  const { BASE, served } = await import('./base');
  expect(BASE).toBe('/lab/callboard');
  expect(served('/help/')).toBe('/lab/callboard/help/');
});
