(() => {
  let stored = null;
  try {
    stored = localStorage.getItem('callboard-color-scheme');
  } catch {
    // Storage may be blocked: fall back to the system's scheme.
  }
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const scheme = stored === 'light' || stored === 'dark' ? stored : dark ? 'dark' : 'light';
  document.documentElement.setAttribute('data-mantine-color-scheme', scheme);
})();
