import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { ConfirmDialog } from '@/components/ConfirmDialog';

type Props = {
  title: string;
  /** Its name so far. */
  name: string;
  /** The names of other tabs. */
  taken: readonly string[];
  onClose: () => void;
  onName: (name: string) => void;
};

/** Asks for the name of a tab. */
export function TabDialog({ title, name: start, taken, onClose, onName }: Props) {
  const [typed, setTyped] = useState(start);
  const name = typed.trim();
  const problem = taken.includes(name) ? 'Another tab has this name.' : null;
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={title}
      action="Save"
      disabled={name === '' || problem !== null}
      onConfirm={() => {
        onName(name);
        return Promise.resolve();
      }}
    >
      <TextInput
        label="Name"
        data-autofocus
        maxLength={50}
        value={typed}
        error={problem}
        onFocus={({ currentTarget }) => currentTarget.select()}
        onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      />
    </ConfirmDialog>
  );
}
