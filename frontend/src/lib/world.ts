/** A world's id without what every Atari id has, such as `Pong` for `ALE/Pong-v5`. */
export const shortWorld = (id: string): string => id.replace(/^ALE\//, '').replace(/-v\d+$/, '');

type Named = { id: string; title: string; family: string };

/** Worlds whose title, id or family has every word that was typed. */
export function findWorlds<W extends Named>(worlds: readonly W[], typed: string): W[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return worlds.filter(({ id, title, family }) => {
    const text = `${id} ${title} ${family}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
