/** Made by `python -m workers.engine.envs.pictures`. Files, not data in the code: a table shows them as it scrolls. */
const files = import.meta.glob<string>('./pictures/*.webp', {
  eager: true,
  query: '?url&no-inline',
  import: 'default',
});

/** The address of a world's picture; a host's own world has none. */
export const pictureOf = (id: string): string | undefined =>
  files[`./pictures/${id.replaceAll('/', '-')}.webp`];
