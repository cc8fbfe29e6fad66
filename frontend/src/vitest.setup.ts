import { configure } from '@testing-library/dom';
import { vi } from 'vitest';

// Most files share a process: none gets what another has left.
vi.unstubAllGlobals();
vi.useRealTimers();
vi.restoreAllMocks();
globalThis.fetch = () => Promise.reject(new TypeError('fetch failed')); // as without a server
localStorage.clear();
sessionStorage.clear();
document.head.replaceChildren();
document.body.replaceChildren();
history.replaceState(null, '', '/');

// A deadline costs nothing when a test passes; a loaded machine may need seconds for a render.
configure({ asyncUtilTimeout: 60_000 });

// Browsers and Node from version 21 on have it.
if (!('groupBy' in Map)) {
  const groupBy = <T, K>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T[]> => {
    const groups = new Map<K, T[]>();
    for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
    return groups;
  };
  Object.assign(Map, { groupBy });
}

// Node's own way prints an element with its window: thousands of lines for one warning that names it.
const MAX_PRINTED = 500;
Object.defineProperty(Node.prototype, Symbol.for('nodejs.util.inspect.custom'), {
  configurable: true,
  value(this: Node): string {
    const markup = this instanceof Element ? this.outerHTML : this.nodeName;
    return markup.length > MAX_PRINTED ? `${markup.slice(0, MAX_PRINTED)}…` : markup;
  },
});
