import { useWindowEvent } from '@mantine/hooks';
import { type RefObject, useRef } from 'react';
import { isDialogOpen } from '@/lib/hooks';

/** What takes the keys that are pressed in it, elsewhere than in a list. */
export const TAKES_KEYS = 'input, textarea, select, [contenteditable], [role=menuitem], [role=option]';

/** The keys of the list of runs in a table of groups, whose rows are selected by checkboxes. */
export function useGroupKeys(onCompare: () => void): RefObject<HTMLTableElement | null> {
  const table = useRef<HTMLTableElement>(null);
  useWindowEvent('keydown', (event) => {
    const { target, key } = event;
    if (!(target instanceof Element) || !table.current || isDialogOpen()) return;
    const isInside = table.current.contains(target);
    if (event.ctrlKey || event.altKey || event.metaKey || (!isInside && target.matches(TAKES_KEYS))) return;
    const boxes = [...table.current.querySelectorAll<HTMLInputElement>('input[type=checkbox]')];
    const at = boxes.findIndex((box) => box.closest('tr')?.contains(target));
    if (key === 'j') boxes[Math.min(boxes.length - 1, at + 1)]?.focus();
    else if (key === 'k') boxes[Math.max(0, at - 1)]?.focus();
    else if (key === 'x') {
      const box = boxes[Math.max(0, at)];
      box?.click();
      box?.focus();
    } else if (key === 'c') onCompare();
    else return;
    event.preventDefault();
  });
  return table;
}
