import { useState, type DragEvent } from 'react';
import { served } from '@/lib/base';

const LINK = 'text/uri-list';

/** The run id in a link to a run or to one of its pages. */
export const runIdFromLink = (link: string): string | undefined => /\/runs\/(\w{26})(?!\w)/.exec(link)?.[1];

/** Props of an element that carries a run when dragged, as a link to the run would. */
export const dragSource = (run: string) => ({
  draggable: true,
  onDragStart: ({ dataTransfer }: DragEvent): void =>
    dataTransfer.setData(LINK, new URL(served(`/runs/${run}`), location.href).href),
});

/** Props of an element that accepts dropped runs: any link to one, from other windows as well. */
export function useDropTarget(onDrop: (run: string) => void) {
  const [over, setOver] = useState(false);
  return {
    'data-over': over || undefined,
    onDragOver: (event: DragEvent): void => {
      if (!event.dataTransfer.types.includes(LINK)) return;
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: ({ currentTarget, relatedTarget }: DragEvent): void => {
      if (!currentTarget.contains(relatedTarget as Node | null)) setOver(false);
    },
    onDrop: (event: DragEvent): void => {
      event.preventDefault();
      setOver(false);
      const run = runIdFromLink(event.dataTransfer.getData(LINK));
      if (run) onDrop(run);
    },
  };
}
