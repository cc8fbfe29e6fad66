import { useState, type DragEvent } from 'react';

const LINK = 'text/uri-list';

/** The id in a link to a run or to something of it. */
export const runOfLink = (link: string): string | undefined => /\/runs\/(\w{26})(?!\w)/.exec(link)?.[1];

/** Makes an element carry a run when dragged, as a link to it would. */
export const carries = (run: string) => ({
  draggable: true,
  onDragStart: ({ dataTransfer }: DragEvent): void =>
    dataTransfer.setData(LINK, new URL(`/runs/${run}`, location.href).href),
});

/** Makes an element take runs that are dropped on it: any link to one, of another window too. */
export function useDrop(onDrop: (run: string) => void) {
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
      const run = runOfLink(event.dataTransfer.getData(LINK));
      if (run) onDrop(run);
    },
  };
}
