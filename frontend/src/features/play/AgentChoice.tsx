import { NativeSelect } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { runsQuery } from '@/api/runs';
import { formatScore } from '@/lib/format';

/** Runs that are offered, best first. */
const LIMIT = 20;

type Props = {
  environment: string;
  /** Id of the run; null for none. */
  value: string | null;
  onChange: (run: string | null) => void;
};

/** Chooses the run whose agent can act in a session; absent if no run has played the environment. */
export function AgentChoice({ environment, value, onChange }: Props) {
  const filter = 'origin:callboard agent_steps>0';
  const { data } = useInfiniteQuery(
    runsQuery({ environment: [environment], filter, sort: '-score', limit: LIMIT }),
  );
  const runs = data?.pages[0]?.items ?? [];
  if (runs.length === 0 && value === null) return null;
  const isListed = value === null || runs.some(({ id }) => id === value);
  return (
    <NativeSelect
      aria-label="Agent that can act in the session"
      value={value ?? ''}
      data={[
        { value: '', label: 'without an agent' },
        ...(isListed ? [] : [{ value, label: 'with the agent of its run' }]),
        ...runs.map(({ id, name, score }) => ({
          value: id,
          label: `with the agent of ${name}, score ${formatScore(score)}`,
        })),
      ]}
      onChange={({ currentTarget }) => onChange(currentTarget.value || null)}
    />
  );
}
