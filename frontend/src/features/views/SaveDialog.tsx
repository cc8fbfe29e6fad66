import { Checkbox, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import {
  changeView,
  createView,
  storeView,
  type View,
  type ViewDocument,
  type ViewSummary,
  viewsQuery,
} from '@/api/views';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { useDenied } from '@/components/permission';
import { nameProblem, suggestedName } from './document';

type Props = {
  /** A saved view, whose name and sharing are changed; without it, a new one is saved. */
  view?: ViewSummary;
  document: ViewDocument;
  project: string | undefined;
  onClose: () => void;
  onSaved: (view: View) => void;
};

/** Asks for the name of a view and who may open it. */
export function SaveDialog({ view, document, project, onClose, onSaved }: Props) {
  const client = useQueryClient();
  const denied = useDenied();
  const { data: views, isPending } = useQuery(viewsQuery);
  const [typed, setTyped] = useState<string | null>(view?.name ?? null);
  const [shared, setShared] = useState(view?.shared ?? false);
  const taken = new Set(views?.flatMap(({ name, mine }) => (mine && name !== null ? [name] : [])));
  const name = typed ?? (isPending ? '' : suggestedName(document, taken));
  const problem = nameProblem(name.trim());
  const save = async (): Promise<void> => {
    const fields = { name: name.trim(), shared };
    const saved = view
      ? await changeView(view.id, fields, view.version)
      : await createView({ ...fields, project: project ?? null, document });
    storeView(client, saved);
    onSaved(saved);
  };
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={view ? 'Name and sharing' : 'Save view'}
      action="Save"
      disabled={name.trim() === '' || problem !== null}
      onConfirm={save}
    >
      <TextInput
        label="Name"
        data-autofocus
        value={name}
        error={problem}
        onFocus={({ currentTarget }) => currentTarget.select()}
        onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      />
      <Checkbox
        mt={12}
        size="xs"
        label="Everybody may open it, and operators may change it"
        checked={shared}
        disabled={denied !== undefined}
        description={denied}
        onChange={({ currentTarget }) => setShared(currentTarget.checked)}
      />
    </ConfirmDialog>
  );
}
