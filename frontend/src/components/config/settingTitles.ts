/** What pages call a setting: its title in the catalogue, on every page the same. */
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { algorithmsQuery, environmentsQuery } from '@/api/catalogue';
import schemas from '@/lib/schemas.json';
import { allFields } from '@/lib/schema';

type Titled = { algorithm: string; environment: string };

/** The titles of the fields of every run. */
const TOP_LEVEL: readonly (readonly [string, string])[] = [
  ['algorithm', 'Algorithm'],
  ['environment', 'Environment'],
  ['seed', 'Seed'],
  ['device', 'Device'],
];

/** The titles of the settings of some runs by path, with the unit; without those that the catalogue lacks. */
export function useSettingTitles(runs: readonly Titled[]): ReadonlyMap<string, string> {
  const { data: algorithms } = useQuery(algorithmsQuery);
  const { data: environments } = useQuery(environmentsQuery);
  const pairs = [...new Set(runs.map(({ algorithm, environment }) => `${algorithm} ${environment}`))].join(
    '\n',
  );
  return useMemo(() => {
    const titles = new Map(TOP_LEVEL);
    for (const pair of pairs.split('\n')) {
      const [algorithm, environment] = pair.split(' ');
      const ofRun = algorithms?.find(({ id }) => id === algorithm);
      const inEnvironment = environments?.find(({ id }) => id === environment);
      if (!ofRun || !inEnvironment) continue;
      for (const { path, title, unit } of allFields(ofRun, inEnvironment, schemas.StopSpec)) {
        if (!titles.has(path)) titles.set(path, unit ? `${title} (${unit})` : title);
      }
    }
    return titles;
  }, [algorithms, environments, pairs]);
}

/** The names of settings by path: their titles, or keys without a title; the path follows names that are equal. */
export function settingNames(
  paths: readonly string[],
  titles: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  const nameOf = (path: string): string => titles.get(path) ?? path.slice(path.indexOf('.') + 1);
  const names = paths.map(nameOf);
  const isUnique = (name: string): boolean => names.filter((other) => other === name).length === 1;
  return new Map(
    paths.map((path, at) => {
      const name = names[at] ?? path;
      return [path, isUnique(name) ? name : `${name}: ${path}`];
    }),
  );
}
