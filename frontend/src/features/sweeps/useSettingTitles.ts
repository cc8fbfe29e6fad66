import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { algorithmsQuery, environmentsQuery } from '@/api/catalogue';
import schemas from '@/api/schemas.json';
import { allFields } from '@/lib/schema';

type Titled = { algorithm: string; environment: string };

/** The titles of a sweep's settings by path, with the unit; empty until the catalogue is loaded. */
export function useSettingTitles({ algorithm, environment }: Titled): ReadonlyMap<string, string> {
  const { data: algorithms } = useQuery(algorithmsQuery);
  const { data: environments } = useQuery(environmentsQuery);
  return useMemo(() => {
    const ofRun = algorithms?.find(({ id }) => id === algorithm);
    const inEnvironment = environments?.find(({ id }) => id === environment);
    if (!ofRun || !inEnvironment) return new Map();
    const fields = allFields(ofRun, inEnvironment, schemas.StopSpec);
    return new Map(fields.map(({ path, title, unit }) => [path, unit ? `${title} (${unit})` : title]));
  }, [algorithms, environments, algorithm, environment]);
}
