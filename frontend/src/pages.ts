/** The scripts of the pages, by their addresses, without the router. */

type Load = () => Promise<unknown>;

/** Of each file of routes, what the plugin of the router splits off: the component. */
const SCRIPTS = import.meta.glob(
  ['./routes/**/*.tsx', '!./routes/**/{-,_}*.tsx', '!./routes/**/*.test.tsx'],
  {
    query: '?tsr-split=component',
  },
);

const segments = (path: string): string[] => path.split('/').filter(Boolean);

/** Parts of a file's name that are not in an address. */
const UNNAMED = ['_shell', 'index', 'route'];

const ROUTES = Object.entries(SCRIPTS).map(([file, load]) => {
  const names = segments(file.slice('./routes/'.length, -'.tsx'.length));
  return { path: names.filter((name) => !UNNAMED.includes(name)), isFrame: names.at(-1) === 'route', load };
});

/** What the page at an address needs: its script, and that of the frame around it. */
export function scriptsOf(address: string): Load[] {
  const given = segments(address);
  return ROUTES.filter(
    ({ path, isFrame }) =>
      (isFrame ? path.length <= given.length : path.length === given.length) &&
      path.every((name, n) => name.startsWith('$') || name === given[n]),
  ).map(({ load }) => load);
}
