import { useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { createView } from '@/api/views';
import { defined } from '@/lib/search';
import { isTooLong, type PageState, toDocument } from './document';
import { type Layout, ViewHead } from './ViewHead';

type Props = { state: PageState; project: string | undefined; onLayout: (layout: Layout) => void };

/** The title of a page whose address has its whole state; one that is too long becomes a view without a name. */
export function PageHead({ state, project, onLayout }: Props) {
  useShortAddress(isTooLong(state) ? state : undefined, project);
  return <ViewHead state={state} project={project} onLayout={onLayout} />;
}

/**
 * Keeps a state that is too long for an address in a view without a name, and leads to that.
 *
 * @param state the state; undefined: none is too long.
 * @param of id of the named view that it differs from.
 * @param changed version of that view that was changed.
 */
export function useShortAddress(
  state: PageState | undefined,
  project: string | undefined,
  of?: string,
  changed?: number,
): void {
  const navigate = useNavigate();
  const [refused, setRefused] = useState<string>();
  const document = state && JSON.stringify(toDocument(state));
  useEffect(() => {
    if (state === undefined || document === undefined || document === refused) return undefined;
    let isCurrent = true;
    createView({ document: toDocument(state), project: project ?? null, shared: false })
      .then(({ id }) => {
        if (!isCurrent) return;
        const search = defined({ of, changed, project });
        void navigate({ to: '/w/$view', params: { view: id }, search, replace: true, resetScroll: false });
      })
      // The long address still works.
      .catch(() => setRefused(document));
    return () => {
      isCurrent = false;
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the document stands for the state
  }, [document, refused, project, of, changed, navigate]);
}
