import { expect, it } from 'vitest';
import { printed } from './printed';

it.each([
  ['plain line', 'plain line'],
  ['tabs\tand\nnewlines\n\nkept', 'tabs\tand\nnewlines\n\nkept'],
  ['\r 10%|#    |\r 50%|###  |\r100%|#####| 1000/1000', '100%|#####| 1000/1000'],
  ['a long state\rshort', 'shortg state'],
  ['a long state\r\x1b[Kshort', 'short'],
  ['a long state\r\x1b[2Kshort', 'short'],
  ['Windows\r\nlines\r\r\n', 'Windows\nlines\n'],
  ['\x1b[2K\x1b[31mred text\x1b[0m and \x1b[1;32mgreen\x1b[0m', 'red text and green'],
  ['\x1b]8;;http://example.invalid\x1b\\link\x1b]8;;\x1b\\ \x1b]0;title\x07end', 'link end'],
  ['\x9b31mred\x9b0m', 'red'],
  ['\x1bP1$r0m\x1b\\\x1b(B\x1b7\x1bMend', 'end'],
  ['cut \x1b[3', 'cut'],
  ['cut \x1b]0;title', 'cut'],
  ['cut \x1b', 'cut'],
  ['bell \x07; backspace abc\b\b\bXYZ', 'bell ; backspace XYZ'],
  ['\b\b\bstart', 'start'],
  ['RTL override: \u202eevil fdp.exe\u202c back', 'RTL override: [U+202E]evil fdp.exe[U+202C] back'],
  ['isolate \u2067abc\u2069, mark \u061c\u200f', 'isolate [U+2067]abc[U+2069], mark [U+061C][U+200F]'],
  ['👩‍👩‍👧‍👦 عربى עברית 中文 ไทย e\u0301', '👩‍👩‍👧‍👦 عربى עברית 中文 ไทย e\u0301'],
  ['emoji 🎭\b🐢', 'emoji 🐢'],
])('printed shows %j as a terminal would', (message, shown) => expect(printed(message)).toBe(shown));

it('printed leaves no control character of any kind, whatever the order', () => {
  const controls = [
    ...Array.from({ length: 0xa0 }, (_, code) => code).filter((code) => code < 0x20 || code > 0x7e),
    ...[0x61c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069],
  ].map((code) => String.fromCharCode(code));
  // eslint-disable-next-line no-control-regex
  const left = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
  for (const first of controls)
    for (const second of controls) expect(printed(`a${first}[b${second}]c`)).not.toMatch(left);
});
