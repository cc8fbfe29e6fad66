/** Lists of names in one text, such as a URL's parameter: separated by commas, which names may contain too. */

const encoded = (name: string): string => name.replaceAll('%', '%25').replaceAll(',', '%2C');
const decoded = (part: string): string => part.replaceAll('%2C', ',').replaceAll('%25', '%');

export const joinNames = (names: readonly string[]): string => names.map(encoded).join(',');

export const splitNames = (text: string): string[] => text.split(',').map(decoded);
