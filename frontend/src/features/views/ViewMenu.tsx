import { ActionIcon, Button, Menu, Modal } from '@mantine/core';
import { IconChevronDown } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { keys } from '@/api/keys';
import { deleteView, type View, type ViewDocument, viewsQuery, viewStatesQuery } from '@/api/views';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { MenuLink } from '@/components/controls';
import { Loading, Problem } from '@/components/feedback';
import { useDenied } from '@/components/permission';
import { RelativeTime } from '@/components/text';
import { linkTo, type PageState, plainLink, toDocument } from './document';
import { SaveDialog } from './SaveDialog';
import classes from './views.module.css';

type Props = {
  state: PageState;
  project: string | undefined;
  view: View | undefined;
  /** The version of it that the state has changed; undefined if nothing is. */
  changed: number | undefined;
  onSave: () => void;
  onRestore: (document: ViewDocument) => void;
};

type Dialog = 'name' | 'states' | 'delete';

/** The views of a project, and what can be done with the open one. */
export function ViewMenu({ state, project, view, changed, onSave, onRestore }: Props) {
  const [opened, setOpened] = useState(false);
  const [dialog, setDialog] = useState<Dialog | null>(null);
  const navigate = useNavigate();
  const client = useQueryClient();
  const denied = useDenied();
  const isAdmin = useDenied('admin') === undefined;
  const { data = [] } = useQuery({ ...viewsQuery, enabled: opened });
  const views = data.filter((other) => project === undefined || other.project === project);
  const mayChange = view !== undefined && (!view.shared || denied === undefined);
  const close = (): void => setDialog(null);
  const remove = async ({ id }: View): Promise<void> => {
    await deleteView(id);
    void client.invalidateQueries({ queryKey: keys.views() });
    // What it showed stays.
    void navigate(plainLink(state, project));
  };
  return (
    <>
      <Menu position="bottom-start" withinPortal opened={opened} onChange={setOpened}>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label="Views" title="Views">
            <IconChevronDown size={16} aria-hidden="true" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown mah={420} style={{ overflowY: 'auto' }}>
          <Menu.Label>{views.length === 0 ? 'No saved views yet' : 'Views'}</Menu.Label>
          {views.map((other) => (
            <MenuLink
              key={other.id}
              {...linkTo(other)}
              fw={other.id === view?.id ? 600 : 400}
              aria-current={other.id === view?.id || undefined}
              rightSection={
                <span className="muted">
                  {other.mine ? (other.shared ? 'shared' : '') : `of ${other.owner}`}
                </span>
              }
            >
              <span className={classes.item}>{other.name}</span>
            </MenuLink>
          ))}
          <Menu.Divider />
          <Menu.Item onClick={onSave}>Save this view as…</Menu.Item>
          {mayChange && <Menu.Item onClick={() => setDialog('name')}>Name and sharing…</Menu.Item>}
          {view && <Menu.Item onClick={() => setDialog('states')}>Earlier states…</Menu.Item>}
          {view && (view.mine || isAdmin) && (
            <Menu.Item color="red" onClick={() => setDialog('delete')}>
              Delete…
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      {view && dialog === 'name' && (
        <SaveDialog
          view={view}
          document={toDocument(state)}
          project={project}
          onClose={close}
          onSaved={(saved) => {
            const { search, ...to } = linkTo(saved);
            const unsaved = changed !== undefined && {
              ...state.search,
              changed: changed === view.version ? saved.version : changed,
            };
            void navigate({ ...to, search: { ...unsaved, ...search }, replace: true });
          }}
        />
      )}
      {view && dialog === 'states' && (
        <States
          view={view}
          onClose={close}
          onRestore={(document) => {
            close();
            onRestore(document);
          }}
        />
      )}
      {view && dialog === 'delete' && (
        <ConfirmDialog
          opened
          onClose={close}
          title="Delete view"
          action="Delete"
          danger
          onConfirm={() => remove(view)}
        >
          Deletes the view “{view.name}” with its earlier states. Its runs stay.
        </ConfirmDialog>
      )}
    </>
  );
}

type StatesProps = { view: View; onClose: () => void; onRestore: (document: ViewDocument) => void };

/** The former documents of a view. A restored one is shown, and saved only on request. */
function States({ view, onClose, onRestore }: StatesProps) {
  const { data, error, refetch } = useQuery(viewStatesQuery(view.id));
  return (
    <Modal opened onClose={onClose} title={`Earlier states of ${view.name ?? 'this view'}`} size="md">
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!error && !data && <Loading label="Loading the earlier states" lines={2} />}
      {data?.length === 0 && <p>It has not been saved again since it was created.</p>}
      <ul className={classes.states}>
        {data?.map(({ version, saved_at, document }) => (
          <li key={version}>
            <span>
              <RelativeTime at={saved_at} />
              {document.filter && <span className="muted"> {document.filter}</span>}
            </span>
            <Button variant="default" onClick={() => onRestore(document)}>
              Show
            </Button>
          </li>
        ))}
      </ul>
    </Modal>
  );
}
