// Light or dark, as chosen on the pages of the installation; a choice made here holds there too.
(() => {
  const KEY = 'callboard-color-scheme';
  try {
    const chosen = localStorage.getItem(KEY);
    const isDark =
      chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
    // What the theme reads next.
    __md_set('__palette', {
      index: Number(isDark),
      color: {
        media: `(prefers-color-scheme: ${isDark ? 'dark' : 'light'})`,
        scheme: isDark ? 'slate' : 'default',
        primary: 'indigo',
        accent: 'indigo',
      },
    });
  } catch {
    return; // Storage may be blocked.
  }
  addEventListener('click', ({ target, isTrusted }) => {
    const label = isTrusted && target instanceof Element && target.closest('label[for^="__palette_"]');
    if (label) localStorage.setItem(KEY, label.htmlFor.endsWith('1') ? 'dark' : 'light');
  });
})();
