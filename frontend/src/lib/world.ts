/** A world's id without what every Atari id has, such as `Pong` for `ALE/Pong-v5`. */
export const shortWorld = (id: string): string => id.replace(/^ALE\//, '').replace(/-v\d+$/, '');
