import { Button, SegmentedControl } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { type ApiProblem, asProblem } from '@/api/problem';
import { changeView, storeView, type View, type ViewDocument } from '@/api/views';
import { LoadingButton } from '@/components/controls';
import { useDenied } from '@/components/permission';
import { differs, linkTo, type PageState, shownDocument, suggestedName, toDocument } from './document';
import { SaveDialog } from './SaveDialog';
import { ViewMenu } from './ViewMenu';
import classes from './views.module.css';

const ShareDialog = lazy(async () => ({
  default: (await import('@/features/shares/ShareDialog')).ShareDialog,
}));

type Props = {
  state: PageState;
  /** The project whose runs are shown; undefined for those of all. */
  project: string | undefined;
  /** The saved view that is open. */
  view?: View | undefined;
  /** The version of it that was changed here: somebody else may have saved another one meanwhile. */
  changed?: number | undefined;
  /** Shows a document that is not saved yet; undefined: the saved one. */
  onDocument?: (document: ViewDocument | undefined) => void;
  onLayout: (layout: Layout) => void;
};

/** The list of runs alone, beside the charts, or hidden. */
export type Layout = ViewDocument['list'];

const LAYOUTS: { value: Layout; label: string }[] = [
  { value: 'alone', label: 'List' },
  { value: 'beside', label: 'Both' },
  { value: 'hidden', label: 'Charts' },
];

/** The title of a page that can be saved as a view: the views, whether this one was changed, and what saves it. */
export function ViewHead({ state, project, view, changed, onDocument, onLayout }: Props) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const denied = useDenied();
  const [naming, setNaming] = useState(false);
  const [sharing, setSharing] = useState(false);
  const document = toDocument(state);
  const isChanged = view !== undefined && differs(state, view.document);
  const save = useMutation({
    mutationFn: (saved: View) => changeView(saved.id, { document }, changed ?? saved.version),
    onSuccess: (saved) => {
      storeView(client, saved);
      onDocument?.(undefined);
    },
  });
  const refused = view && whyNotSaved(view, denied);
  const title = state.page === 'runs' ? 'Runs' : 'Compare';
  return (
    <div className={classes.head}>
      <span className={classes.title}>
        <h1 className="page-title">{view?.name ?? title}</h1>
        <ViewMenu
          state={state}
          project={project}
          view={view}
          changed={isChanged ? (changed ?? view.version) : undefined}
          onSave={() => setNaming(true)}
          onRestore={(restored) => onDocument?.(restored)}
        />
      </span>
      <SegmentedControl
        size="xs"
        aria-label="Layout"
        value={document.list}
        data={LAYOUTS}
        onChange={(layout) => onLayout(layout as Layout)}
      />
      {!view && (
        <Button variant="default" onClick={() => setNaming(true)}>
          Save view
        </Button>
      )}
      <Button variant="default" onClick={() => setSharing(true)}>
        Share
      </Button>
      {isChanged && (
        <>
          <span role="status">Changed</span>
          {refused === undefined && (
            <LoadingButton variant="default" loading={save.isPending} onClick={() => save.mutate(view)}>
              Save
            </LoadingButton>
          )}
          <Button variant="subtle" onClick={() => setNaming(true)}>
            Save as…
          </Button>
          <Button variant="subtle" color="gray" onClick={() => onDocument?.(undefined)}>
            Back to saved
          </Button>
        </>
      )}
      {isChanged && refused !== undefined && <span className="muted">{refused}</span>}
      {save.isError && isChanged && <span role="alert">{whyRefused(asProblem(save.error))}</span>}
      {sharing && (
        <Suspense fallback={null}>
          <ShareDialog
            page={{
              title: view?.name ?? suggestedName(document, new Set()),
              project: project ?? null,
              ...shownDocument(state),
            }}
            onClose={() => setSharing(false)}
          />
        </Suspense>
      )}
      {naming && (
        <SaveDialog
          document={document}
          project={project}
          onClose={() => setNaming(false)}
          onSaved={(saved) => void navigate(linkTo(saved))}
        />
      )}
    </div>
  );
}

/** Why a view was not saved. */
const whyRefused = ({ status, message }: ApiProblem): string =>
  status === 412
    ? 'Not saved: the view was saved meanwhile. “Back to saved” shows what it is now; “Save as…” keeps yours beside it.'
    : message;

/** Why a view cannot be replaced; undefined if it can. */
function whyNotSaved(view: View, denied: string | undefined): string | undefined {
  if (view.read_only) return 'Read only: of another version of Callboard, or damaged.';
  return view.shared ? denied : undefined;
}
