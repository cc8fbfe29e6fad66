import { useSyncExternalStore } from 'react';

/** One clock for the whole page: relative times move together, once a second. */
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

const wholeSecond = (): number => Math.floor(Date.now() / 1000) * 1000;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** Milliseconds since 1970 in whole seconds, renewed while someone looks. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, wholeSecond);
}
