import { useEffect } from 'react';

/** The elements that may take over the focus of a removed one: they are named or bounded parts of the page. */
const CONTAINERS = 'section, header, footer, form, main, [role=region], [role=toolbar]';

/**
 * Keeps the focus near an element that is removed while it has it, such as a stop button when the run ends. Browsers
 * would move it to the start of the page.
 */
export function useFocusKeeper(): void {
  useEffect(() => {
    let path: EventTarget[] = [];
    const remember = (event: FocusEvent): void => {
      path = event.composedPath();
    };
    const observer = new MutationObserver(() => {
      const [focused] = path;
      if (!(focused instanceof HTMLElement) || focused.isConnected) return;
      if (document.activeElement !== document.body && document.activeElement !== null) return;
      const containers = path.filter(
        (target): target is HTMLElement =>
          target instanceof HTMLElement && target.isConnected && target.matches(CONTAINERS),
      );
      path = [];
      const next = containers[0] ?? document.getElementById('main');
      if (!next) return;
      if (next.tabIndex < 0) next.tabIndex = -1;
      next.focus({ preventScroll: true });
    });
    document.addEventListener('focusin', remember);
    observer.observe(document.body, { childList: true, subtree: true });
    return () => {
      document.removeEventListener('focusin', remember);
      observer.disconnect();
    };
  }, []);
}
