import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { studiesOfRunQuery } from '@/api/studies';

type Props = {
  runId: string;
  /** What becomes of their figures. */
  children: string;
};

/** The studies that a run is part of, before it is changed. */
export function InStudies({ runId, children }: Props) {
  const { data, isError } = useQuery(studiesOfRunQuery(runId));
  if (data ? data.items.length === 0 : !isError) return null;
  const names = data?.items.map(({ name }) => name).join(', ');
  return (
    <Text inherit mt={8}>
      {data
        ? `Part of studies: ${names}${data.next_cursor ? ' and others' : ''}.`
        : 'The studies that it is part of, if any, could not be loaded.'}{' '}
      {children}
    </Text>
  );
}
