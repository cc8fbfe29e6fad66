import { useEffect, type RefObject } from 'react';

/** What is above may still load for this long. */
const SETTLING_MS = 5000;
const INPUTS = ['wheel', 'touchstart', 'pointerdown', 'keydown'] as const;

/**
 * Scrolls to an element when the page opens, and again while what is above it loads, until the user scrolls or types.
 */
export function useLanding(target: RefObject<HTMLElement | null>, wanted: boolean): void {
  useEffect(() => {
    if (!wanted) return;
    const observer = new ResizeObserver(() => target.current?.scrollIntoView({ block: 'start' }));
    observer.observe(document.body);
    const stop = (): void => {
      observer.disconnect();
      clearTimeout(timer);
      for (const input of INPUTS) removeEventListener(input, stop);
    };
    const timer = setTimeout(stop, SETTLING_MS);
    for (const input of INPUTS) addEventListener(input, stop, { passive: true });
    return stop;
  }, [target, wanted]);
}
