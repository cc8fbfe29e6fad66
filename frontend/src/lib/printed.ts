/** ESC or C1 control sequences of terminals: CSI, strings such as OSC, and the others. */
const SEQUENCE =
  // eslint-disable-next-line no-control-regex
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]?/gy;
const ERASES_LINE = /^(?:\x1b\[|\x9b)([0-2]?)K$/; // eslint-disable-line no-control-regex
/** Controls that would change the order of the characters around them. */
const BIDIRECTIONAL = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
// eslint-disable-next-line no-control-regex
const SPECIAL = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

/** What a terminal would have left on the screen of a line of output: carriage returns and backspaces overwrite,
 * escape sequences vanish. Bidirectional controls are named, as in `[U+202E]`, instead of obeyed. */
export function printed(message: string): string {
  if (!SPECIAL.test(message)) return message;
  return message.split(/\r*\n/).map(printedLine).join('\n');
}

function printedLine(line: string): string {
  const cells: string[] = [];
  let cursor = 0;
  for (let at = 0; at < line.length;) {
    SEQUENCE.lastIndex = at;
    const [sequence] = SEQUENCE.exec(line) ?? [];
    if (sequence) {
      const [, part] = ERASES_LINE.exec(sequence) ?? [];
      if (part === '2') cells.fill(' ');
      else if (part === '1') cells.fill(' ', 0, cursor + 1);
      else if (part !== undefined) cells.length = Math.min(cells.length, cursor);
      at += sequence.length;
      continue;
    }
    const character = String.fromCodePoint(line.codePointAt(at) ?? 0);
    at += character.length;
    if (character === '\r') cursor = 0;
    else if (character === '\b') cursor = Math.max(cursor - 1, 0);
    // eslint-disable-next-line no-control-regex
    else if (character === '\t' || !/[\0-\x1f\x7f-\x9f]/.test(character)) {
      while (cells.length < cursor) cells.push(' ');
      cells[cursor] = character;
      cursor += 1;
    }
  }
  return cells.join('').trimEnd().replace(BIDIRECTIONAL, named);
}

const named = (control: string): string =>
  `[U+${control.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}]`;
