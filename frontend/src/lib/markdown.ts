/**
 * Parses the Markdown of notes: paragraphs, headings, lists, quotes, code, rules, emphasis and links. HTML is text.
 * The time is proportional to the length, whatever the text.
 */

export type Inline =
  | { kind: 'text' | 'code'; text: string }
  | { kind: 'strong' | 'em' | 'del'; children: Inline[] }
  | { kind: 'link'; href: string; children: Inline[] }
  | { kind: 'break' };

export type Block =
  | { kind: 'paragraph'; children: Inline[] }
  | { kind: 'heading'; level: number; children: Inline[] }
  | { kind: 'code'; text: string }
  | { kind: 'quote'; children: Block[] }
  | { kind: 'list'; start: number | null; items: Block[][] }
  | { kind: 'rule' };

/** Deeper nesting is plain text. */
const MAX_DEPTH = 6;

const FENCE = /^ {0,3}(```+|~~~+)/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.+)$/;
const RULE = /^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4})(?=\S)/;

const isBlank = (line: string): boolean => line.trim() === '';

const startsBlock = (line: string): boolean =>
  FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);

export const parseMarkdown = (text: string): Block[] => blocks(text.split(/\r\n|\r|\n/), 0);

function blocks(lines: readonly string[], depth: number): Block[] {
  const found: Block[] = [];
  let at = 0;
  /** Takes lines as long as they match. */
  const take = (matches: (line: string) => boolean): string[] => {
    const from = at;
    while (at < lines.length && matches(lines[at] ?? '')) at += 1;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at] ?? '';
    const [, fence] = FENCE.exec(line) ?? [];
    const [, hashes, title] = HEADING.exec(line) ?? [];
    if (isBlank(line)) {
      at += 1;
    } else if (fence !== undefined) {
      at += 1;
      const text = take((each) => !each.trimStart().startsWith(fence)).join('\n');
      at += 1;
      found.push({ kind: 'code', text });
    } else if (hashes !== undefined && title !== undefined) {
      at += 1;
      found.push({ kind: 'heading', level: hashes.length, children: inline(title.trim()) });
    } else if (RULE.test(line)) {
      at += 1;
      found.push({ kind: 'rule' });
    } else if (depth < MAX_DEPTH && QUOTE.test(line)) {
      const quoted = take((each) => QUOTE.test(each)).map((each) => each.replace(QUOTE, ''));
      found.push({ kind: 'quote', children: blocks(quoted, depth + 1) });
    } else if (depth < MAX_DEPTH && ITEM.test(line)) {
      const [list, next] = listFrom(lines, at, depth);
      found.push(list);
      at = next;
    } else {
      at += 1;
      const rest = take((each) => !isBlank(each) && !startsBlock(each));
      const text = [line, ...rest].map((each) => each.trim()).join('\n');
      found.push({ kind: 'paragraph', children: inline(text) });
    }
  }
  return found;
}

/** The list that starts at a line, and the number of the line after it. */
function listFrom(lines: readonly string[], from: number, depth: number): [Block, number] {
  const items: Block[][] = [];
  const first = ITEM.exec(lines[from] ?? '')?.[2] ?? '';
  const ordered = /\d/.test(first);
  let at = from;
  while (at < lines.length) {
    const marker = ITEM.exec(lines[at] ?? '');
    if (!marker || /\d/.test(marker[2] ?? '') !== ordered || RULE.test(lines[at] ?? '')) break;
    const width = marker[0].length;
    const item = [(lines[at] ?? '').slice(width)];
    at += 1;
    // Indented lines belong to the item; blank lines only if such a line follows.
    while (at < lines.length) {
      let next = at;
      while (next < lines.length && isBlank(lines[next] ?? '')) next += 1;
      const line = lines[next];
      if (line === undefined) break;
      const indented = line.startsWith('  ');
      if (!indented && (next > at || startsBlock(line))) break;
      while (at < next) {
        item.push('');
        at += 1;
      }
      item.push(line.slice(Math.min(width, line.length - line.trimStart().length)));
      at += 1;
    }
    items.push(blocks(item, depth + 1));
  }
  return [{ kind: 'list', start: ordered ? Number.parseInt(first, 10) : null, items }, at];
}

/** Other schemes, such as `javascript:`, are not linked. */
const SAFE_URL = /^(?:https?:\/\/|mailto:|\/(?![/\\])|#)/i;

const LINK = /\[([^\]\n]{1,500})\]\(([^()\s]{1,2000})\)/y;
const BARE_URL = /https?:\/\/[^\s<>()]{0,1999}[^\s<>().,;:!?]/y;
const ESCAPED = /[\\`*_~[\]()#+\-.!>]/;
const DELIMITERS = [
  ['**', 'strong'],
  ['__', 'strong'],
  ['~~', 'del'],
  ['*', 'em'],
  ['_', 'em'],
] as const;
const WORD = /[\p{L}\p{N}]/u;

function inline(text: string, depth = 0): Inline[] {
  const found: Inline[] = [];
  /** Delimiters that do not occur again: each is searched for to the end of the text only once. */
  const absent = new Set<string>();
  let plain = '';
  let at = 0;
  const push = (node: Inline, length: number): void => {
    if (plain) found.push({ kind: 'text', text: plain });
    plain = '';
    found.push(node);
    at += length;
  };
  const closing = (delimiter: string, from: number): number => {
    if (absent.has(delimiter)) return -1;
    const end = text.indexOf(delimiter, from);
    if (end < 0) absent.add(delimiter);
    return end;
  };
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    return pattern.exec(text);
  };

  while (at < text.length) {
    const character = text[at] ?? '';
    if (character === '\n') {
      push({ kind: 'break' }, 1);
      continue;
    }
    if (character === '\\' && ESCAPED.test(text[at + 1] ?? '')) {
      plain += text[at + 1] ?? '';
      at += 2;
      continue;
    }
    if (character === '`') {
      const end = closing('`', at + 1);
      if (end > at + 1) {
        push({ kind: 'code', text: text.slice(at + 1, end) }, end + 1 - at);
        continue;
      }
    }
    const link = character === '[' ? match(LINK) : null;
    if (link && SAFE_URL.test(link[2] ?? '')) {
      const children: Inline[] = [{ kind: 'text', text: link[1] ?? '' }];
      push({ kind: 'link', href: link[2] ?? '', children }, link[0].length);
      continue;
    }
    const url = character === 'h' && !WORD.test(text[at - 1] ?? '') ? match(BARE_URL) : null;
    if (url) {
      push({ kind: 'link', href: url[0], children: [{ kind: 'text', text: url[0] }] }, url[0].length);
      continue;
    }
    const [delimiter, kind] = DELIMITERS.find(([each]) => text.startsWith(each, at)) ?? [];
    if (delimiter !== undefined && depth < MAX_DEPTH) {
      const from = at + delimiter.length;
      const end = closing(delimiter, from + 1);
      // `a * b * c` and `snake_case_name` are no emphasis.
      const opens =
        /\S/.test(text[from] ?? '') && !(delimiter.startsWith('_') && WORD.test(text[at - 1] ?? ''));
      const closes =
        end > 0 &&
        /\S/.test(text[end - 1] ?? '') &&
        !(delimiter.startsWith('_') && WORD.test(text[end + delimiter.length] ?? ''));
      if (opens && closes) {
        push({ kind, children: inline(text.slice(from, end), depth + 1) }, end + delimiter.length - at);
        continue;
      }
      plain += delimiter;
      at = from;
      continue;
    }
    plain += character;
    at += 1;
  }
  if (plain) found.push({ kind: 'text', text: plain });
  return found;
}
