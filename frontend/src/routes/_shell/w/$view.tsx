import { useDocumentTitle } from '@mantine/hooks';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { createFileRoute, useNavigate } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useEffect, useMemo, useRef, useState } from 'react';
import { changeView, namedViewQuery, storeView, type View, type ViewDocument, viewQuery } from '@/api/views';
import { Loading, PageProblem, titleOf } from '@/components/feedback';
import { ApiProblem } from '@/api/problem';
import { DEFAULT_PARAMETER } from '@/features/runs/columnLayout';
import {
  differs,
  isTooLong,
  type PageState,
  plainLink,
  stateOf,
  toDocument,
  toState,
} from '@/features/views/document';
import { useShortAddress } from '@/features/views/PageHead';
import { ViewHead } from '@/features/views/ViewHead';
import { defined } from '@/lib/search';
import { withLayout } from '@/routes/-layout';
import { useProvideSavedList } from '@/lib/savedList';
import { viewSearch } from '@/components/run/search';

export const Route = createFileRoute('/_shell/w/$view')({ validateSearch: viewSearch, component: ViewPage });

const ULID = /^[0-9A-HJKMNP-TV-Z]{26}$/;

const RunsView = lazy(async () => ({ default: (await import('@/routes/-RunsView')).RunsView }));
const CompareView = lazy(async () => ({ default: (await import('@/routes/-CompareView')).CompareView }));

/** A view: under its name, or under its id the state of an address that would be too long. */
function ViewPage() {
  const { view } = Route.useParams();
  return ULID.test(view) ? <Unnamed id={view} /> : <Named name={view} />;
}

function Named({ name }: { name: string }) {
  const { project, by } = Route.useSearch();
  const { data, error, refetch } = useQuery(namedViewQuery({ name, project, by }));
  const missing = data === null ? new ApiProblem(404, 'Not found', `There is no view “${name}”`) : null;
  if (data) return <Saved key={data.id} view={data} />;
  return <Waiting error={error ?? missing} onRetry={() => void refetch()} />;
}

/** A page without its view: it loads, or there is none. */
function Waiting({ error, onRetry }: { error: Error | null; onRetry: () => void }) {
  useDocumentTitle('View · Callboard');
  return (
    <div className="page">
      <h1 className="page-title">{titleOf(error, 'View')}</h1>
      {error ? (
        <PageProblem error={error} onRetry={onRetry} />
      ) : (
        <Loading label="Loading the view" lines={8} />
      )}
    </div>
  );
}

/** A named view: as it was saved, or as its address has changed it. */
function Saved({ view }: { view: View }) {
  const address = Route.useSearch();
  const navigate = Route.useNavigate();
  useDocumentTitle(`${view.name ?? 'View'} · Callboard`);
  const project = view.project ?? undefined;
  const saved = useMemo(() => toState(view.document), [view.document]);
  const { changed, selected, tab } = address;
  const state = useMemo(
    () => (changed ? stateOf(address) : withSelection(saved, selected, tab)),
    [changed, selected, tab, saved, address],
  );
  useShortAddress(changed && isTooLong(state) ? state : undefined, project, view.id, changed);
  const place = { project: address.project, by: address.by };
  const show = (next: PageState, replace: boolean): void => {
    const search = differs(next, view.document)
      ? { ...next.search, ...place, changed: changed ?? view.version }
      : { ...place, ...selectionOf(next) };
    void navigate({ search: defined(search), replace, resetScroll: false });
  };
  const head = (
    <ViewHead
      state={state}
      project={project}
      view={view}
      changed={changed}
      onLayout={(layout) => show(withLayout(state, layout, project), false)}
      onDocument={(document) => show(document ? toState(document) : saved, false)}
    />
  );
  return <Body state={state} project={project} head={head} onState={show} />;
}

const SAVE_AFTER_MS = 500;

/** A view without a name: each change is stored in it, as an address has each change. */
function Unnamed({ id }: { id: string }) {
  const { data, error, refetch } = useQuery({ ...viewQuery(id), staleTime: Infinity });
  if (data) return <Stored key={id} view={data} />;
  return <Waiting error={error} onRetry={() => void refetch()} />;
}

function Stored({ view }: { view: View }) {
  const { of, changed } = Route.useSearch();
  const navigate = useNavigate();
  const client = useQueryClient();
  const { data: base } = useQuery({ ...viewQuery(of ?? ''), enabled: of !== undefined });
  const [state, setState] = useState<PageState>(() => toState(view.document));
  const unsaved = useRef<PageState>(undefined);
  useDocumentTitle(`${base?.name ?? (state.page === 'runs' ? 'Runs' : 'Compare')} · Callboard`);
  const project = view.project ?? undefined;
  useEffect(() => {
    const save = (): void => {
      const next = unsaved.current;
      unsaved.current = undefined;
      // If it fails, the page stays as it is, and its address leads to the former state.
      if (next)
        changeView(view.id, { document: toDocument(next) }).then(
          (to) => storeView(client, to),
          () => undefined,
        );
    };
    const timer = setInterval(save, SAVE_AFTER_MS);
    return () => {
      clearInterval(timer);
      save();
    };
  }, [view.id, client]);
  const show = (next: PageState, replace: boolean): void => {
    if (base?.name != null && (!differs(next, base.document) || !isTooLong(next))) {
      const search = differs(next, base.document) ? { ...next.search, changed: changed ?? base.version } : {};
      const place = defined({ project: base.project ?? undefined, by: base.mine ? undefined : base.owner });
      unsaved.current = undefined;
      void navigate({
        to: '/w/$view',
        params: { view: base.name },
        search: { ...search, ...place },
        replace,
      });
    } else if (!isTooLong(next)) {
      unsaved.current = undefined;
      void navigate({ ...plainLink(next, project), replace });
    } else {
      setState(next);
      if (JSON.stringify(toDocument(next)) !== JSON.stringify(toDocument(state))) unsaved.current = next;
    }
  };
  const head = (
    <ViewHead
      state={state}
      project={project}
      view={base}
      changed={changed}
      onLayout={(layout) => show(withLayout(state, layout, project), false)}
      onDocument={(document: ViewDocument | undefined) => {
        if (document) show(toState(document), false);
        else if (base) show(toState(base.document), false);
      }}
    />
  );
  return <Body state={state} project={project} head={head} onState={show} />;
}

type BodyProps = {
  state: PageState;
  project: string | undefined;
  head: ReactNode;
  onState: (state: PageState, replace: boolean) => void;
};

/** The page that shows a state. */
function Body({ state, project, head, onState }: BodyProps) {
  const latest = useRef({ state, onState });
  useEffect(() => {
    latest.current = { state, onState };
  });
  const q = state.page === 'runs' ? (state.search.q ?? '') : null;
  const list = useMemo(
    () =>
      q === null
        ? null
        : {
            q: q || undefined,
            change: (to: string | undefined) => {
              const { state: shown, onState: show } = latest.current;
              if (shown.page === 'runs')
                show({ page: 'runs', search: defined({ ...shown.search, q: to }) }, true);
            },
          },
    [q],
  );
  useProvideSavedList(list);
  return (
    <Suspense
      fallback={
        <div className="page">
          {head}
          <Loading label="Loading the page" lines={8} />
        </div>
      }
    >
      {state.page === 'runs' ? (
        <RunsView
          search={defined({ ...state.search, project, columns: state.search.columns ?? DEFAULT_PARAMETER })}
          head={head}
          onSearch={({ project: _project, columns, ...search }, replace = false) => {
            const own = columns === DEFAULT_PARAMETER ? undefined : columns;
            onState({ page: 'runs', search: defined({ ...search, columns: own }) }, replace);
          }}
        />
      ) : (
        <CompareView
          search={state.search}
          head={head}
          onSearch={(search, replace = false) => onState({ page: 'compare', search }, replace)}
        />
      )}
    </Suspense>
  );
}

/** What is chosen on a page, but not saved with it. */
const selectionOf = ({
  page,
  search,
}: PageState): { selected?: string | undefined; tab?: string | undefined } =>
  page === 'runs' ? { selected: search.selected } : { tab: search.tab };

const withSelection = (state: PageState, selected: string | undefined, tab: string | undefined): PageState =>
  state.page === 'runs'
    ? { page: 'runs', search: defined({ ...state.search, selected }) }
    : { page: 'compare', search: defined({ ...state.search, tab }) };
