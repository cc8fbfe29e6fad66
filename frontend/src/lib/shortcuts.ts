/** The keys of every page. `components/shortcutTable.ts` has those of each page, too. */

export type Shortcut = {
  /** As they are printed. */
  keys: readonly string[];
  action: string;
  /** The key that the palette presses; without it, the action needs something that has the focus. */
  press?: string;
};

const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** The keys of every page. */
export const GLOBAL = {
  palette: { keys: [isMac ? '⌘' : 'Ctrl', 'K'], action: 'Go to a page, run or view, or act' },
  search: { keys: ['/'], press: '/', action: 'Search runs' },
  shortcuts: { keys: ['?'], press: '?', action: 'Show all keyboard shortcuts' },
} as const satisfies Record<string, Shortcut>;

/** Acts as if a key were pressed while nothing has the focus. */
export function pressKey(key: string, modifiers: { ctrlKey?: boolean } = {}): void {
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...modifiers });
  document.body.dispatchEvent(event);
}
