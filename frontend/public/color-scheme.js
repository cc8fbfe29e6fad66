(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem('callboard-color-scheme');
  } catch {
    // Storage may be forbidden; the system's scheme is then the answer.
  }
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const scheme = chosen === 'light' || chosen === 'dark' ? chosen : dark ? 'dark' : 'light';
  document.documentElement.setAttribute('data-mantine-color-scheme', scheme);
})();
