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
  if (isError) {
    return (
      <Text inherit mt={8}>
        Which studies it is part of is not known. {children}
      </Text>
    );
  }
  if (!data || data.items.length === 0) return null;
  const names = data.items.map(({ name }) => name).join(', ');
  return (
    <Text inherit mt={8}>
      Part of studies: {names}
      {data.next_cursor ? ' and others' : ''}. {children}
    </Text>
  );
}
