import { TextInput, type TextInputProps } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';
import { MAX_PROJECT } from '@/api/runBounds';
import { projectsQuery } from '@/api/runs';

/** Why a typed text is no name of a project; null if it is, or empty. */
export const projectProblem = (typed: string): string | null =>
  typed.length > MAX_PROJECT
    ? `At most ${MAX_PROJECT} characters.`
    : typed.startsWith('.') || /["\\]/.test(typed)
      ? 'A name has no double quotes and backslashes, and begins with no dot.'
      : null;

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
