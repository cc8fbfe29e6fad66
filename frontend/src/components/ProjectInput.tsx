import { TextInput, type TextInputProps } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';
import { projectsQuery } from '@/api/runs';

type Props = Omit<TextInputProps, 'value' | 'onChange'> & {
  value: string;
  onChange: (typed: string) => void;
};

/** The name of a project: one that exists, or a new one. */
export function ProjectInput({ value, onChange, ...props }: Props) {
  const list = useId();
  const projects = useQuery(projectsQuery).data ?? [];
  return (
    <>
      <TextInput
        label="Project"
        list={list}
        value={value}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
        {...props}
      />
      <datalist id={list}>
        {projects.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}
