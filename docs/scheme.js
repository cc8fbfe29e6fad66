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
  // By pointer or keyboard; the theme's own start changes the attribute alone, without this event.
  addEventListener('change', ({ target }) => {
    if (!(target instanceof HTMLInputElement) || target.name !== '__palette') return;
    try {
      localStorage.setItem(KEY, target.dataset.mdColorScheme === 'slate' ? 'dark' : 'light');
    } catch {
      // Storage is full.
    }
  });
})();
