import { useWindowEvent } from '@mantine/hooks';
import { useState, useSyncExternalStore } from 'react';

/** One clock for the whole page, so that relative times update together. */
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

const wholeSecond = (): number => Math.floor(Date.now() / 1000) * 1000;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    for (const listener of listeners) listener();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** Milliseconds since 1970, rounded down to the second and updated once a second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, wholeSecond);
}

/** The value while `settled`, otherwise the last settled one. */
export function useSettled<T>(value: T, settled: boolean): T {
  const [last, setLast] = useState(value);
  if (settled && last !== value) setLast(value);
  return settled ? value : last;
}

/** Whether a dialog is open: the page's shortcuts do nothing then. */
export const isDialogOpen = (): boolean => document.querySelector('[aria-modal=true]') !== null;

/** Whether the page is used by touch: a swipe scrolls it, also over a chart, and focus opens a keyboard. */
export const isTouched = (): boolean => matchMedia('(pointer: coarse)').matches;

/** Calls `act` when F is pressed outside a field. Radio buttons are none: a chosen option keeps the focus. */
export function useFullSizeKey(act: () => void): void {
  useWindowEvent('keydown', (event) => {
    if (event.key.toLowerCase() !== 'f' || event.ctrlKey || event.altKey || event.metaKey) return;
    if (isDialogOpen()) return;
    if (!(event.target as Element).matches('input:not([type=radio]), select, textarea')) act();
  });
}

let printing = false;

function subscribeToPrint(listener: () => void): () => void {
  const change = (to: boolean) => (): void => {
    printing = to;
    listener();
  };
  const [start, end] = [change(true), change(false)];
  const paper = matchMedia('print');
  const onMedia = (): void => (paper.matches ? start() : end());
  window.addEventListener('beforeprint', start);
  window.addEventListener('afterprint', end);
  paper.addEventListener('change', onMedia);
  return () => {
    window.removeEventListener('beforeprint', start);
    window.removeEventListener('afterprint', end);
    paper.removeEventListener('change', onMedia);
  };
}

/** Whether the page is being printed; rendered before the paper is laid out. */
export function usePrinting(): boolean {
  return useSyncExternalStore(subscribeToPrint, () => printing);
}
