import { Fragment, useLayoutEffect, useRef, useState } from 'react';
import { formatAge, formatAgo, formatExact, formatScore } from '@/lib/format';
import { useNow } from '@/lib/hooks';
import classes from './text.module.css';

/** Shorter names fit nearly everywhere, and are not measured. */
const MIN_MEASURED = 16;

/** How a name is laid out, once it is measured. */
type Fit = {
  name: string;
  /** `whole`, without what is repeated (`rest`), or without its middle (`cut`). */
  kind: 'whole' | 'rest' | 'cut';
  /** Whether this layout is final. */
  settled: boolean;
  /** Letters that fit on a line. */
  perLine: number;
};

/** Where a name in two lines breaks: after a separator, but neither around a sign, as in `=-1`, nor in `1e-4`. */
const SEPARATORS = /(?<=[_,/\s]|=(?!-)|(?<![\d.]e|[=_,/\s]|^)-)/iu;

const isTooLarge = ({ scrollHeight, clientHeight, scrollWidth, clientWidth }: HTMLElement): boolean =>
  scrollHeight > clientHeight || scrollWidth > clientWidth;

/**
 * A name in a single element, so that the browser's search finds it and copying keeps it whole.
 *
 * Two lines break at separators only. Without room for all of the name, its beginning `repeated` is hidden, which the
 * page also shows beside the name. If that is not enough, its middle is hidden: similar names differ at their ends.
 * The title is the name's tooltip.
 */
export function TruncatedName({
  name,
  title = name,
  repeated = '',
  lines = 1,
}: {
  name: string;
  title?: string;
  repeated?: string;
  lines?: 1 | 2;
}) {
  const element = useRef<HTMLSpanElement>(null);
  /** Null until the name is measured. */
  const [fit, setFit] = useState<Fit | null>(null);
  const settledWidth = useRef(0);
  const start = repeated !== '' && name.startsWith(repeated) && name !== repeated ? repeated : '';
  useLayoutEffect(() => {
    const { current: span } = element;
    if (!span || name.length < MIN_MEASURED) return;
    const current = fit?.name === name ? fit : null;
    if (current?.settled) {
      settledWidth.current = span.clientWidth; // a table cell is narrower without the middle
      return;
    }
    const perLine = current?.perLine ?? lettersPerLine(span, name);
    const kind = current?.kind ?? 'whole';
    const fits = lines === 2 ? !isTooLarge(span) : perLine >= Array.from(name).length;
    if (fits) setFit({ name, kind, settled: true, perLine });
    else if (kind === 'whole' && start !== '' && lines === 2)
      setFit({ name, kind: 'rest', settled: false, perLine });
    else setFit({ name, kind: 'cut', settled: true, perLine });
  }, [name, lines, fit, start]);
  useLayoutEffect(() => {
    const { current: span } = element;
    if (!span || name.length < MIN_MEASURED) return;
    const observer = new ResizeObserver(() => {
      if (span.clientWidth !== settledWidth.current) setFit(null);
    });
    observer.observe(span);
    // Letters of the page's own font have other widths.
    if ('fonts' in document && document.fonts.status === 'loading')
      void document.fonts.ready.then(() => setFit(null));
    return () => observer.disconnect();
  }, [name]);
  const { kind, perLine } = fit?.name === name ? fit : { kind: 'whole', perLine: 0 };
  const parts =
    kind === 'cut'
      ? lines === 1
        ? inOneLine(name, start, perLine)
        : inTwoLines(name, start, perLine)
      : kind === 'rest'
        ? [hidden(start), shown(name.slice(start.length))]
        : [shown(name)];
  return (
    <span ref={element} title={title} className={lines === 1 ? `ellipsis ${classes.line}` : classes.lines}>
      {parts.map(({ text, isHidden, endsLine }, at) =>
        isHidden ? (
          <span key={at} className={`${classes.cut} ${endsLine ? classes.ends : ''}`}>
            {text}
          </span>
        ) : (
          <Fragment key={at}>{lines === 1 ? text : breakable(text)}</Fragment>
        ),
      )}
    </span>
  );
}

const breakable = (text: string) =>
  text.split(SEPARATORS).map((part, at) => (
    <Fragment key={at}>
      {at > 0 && <wbr />}
      {part}
    </Fragment>
  ));

/** The sum of the lines' widths. Chromium returns two rectangles for a truncated line: whole, and up to the dots. */
function widthOf(rects: DOMRectList): number {
  const lines = new Map<number, [number, number]>();
  for (const { top, left, right } of rects) {
    const [start, end] = lines.get(top) ?? [left, right];
    lines.set(top, [Math.min(start, left), Math.max(end, right)]);
  }
  return [...lines.values()].reduce((sum, [start, end]) => sum + end - start, 0);
}

/** How many of a name's letters fit on a line of the element that shows all of it. */
function lettersPerLine(span: HTMLElement, name: string): number {
  const range = document.createRange();
  range.selectNodeContents(span);
  const width = widthOf(range.getClientRects());
  const letters = Array.from(name).length;
  return width === 0 ? letters : (letters * span.clientWidth) / width;
}

/** A part of a name; `endsLine`: the next part begins a new line. */
type Part = { text: string; isHidden: boolean; endsLine?: boolean };

const shown = (text: string): Part => ({ text, isHidden: false });
const hidden = (text: string): Part => ({ text, isHidden: true });

/** Letters differ in width: somewhat fewer than the average surely fit. */
const SURELY = 0.92;

/** A name on a line of `perLine` letters: without its beginning `start` and, if need be, without its middle. */
function inOneLine(name: string, start: string, perLine: number): Part[] {
  // The dots take room as well.
  const room = Math.max(2, Math.floor(perLine * SURELY) - 2);
  const rest = Array.from(name.slice(start.length));
  const parts =
    rest.length <= room ? [shown(rest.join(''))] : inMiddle(rest, Math.max(2, room - (start === '' ? 0 : 2)));
  return start === '' ? parts : [hidden(start), ...parts];
}

/** A number with its sign, exponent and unit; a hyphen within a word is no sign. */
const NUMBER = /(?:(?<![\w.])[+-])?\d[\d.]*(?:e[+-]?\d+)?[a-z%]*/gi;

/** Start, hidden middle and end of a name, of which n letters have room; numbers are not split if possible. */
function inMiddle(letters: readonly string[], n: number): Part[] {
  // One character a letter, so that places in the text are places in the list.
  const text = letters.map((letter) => (letter.length === 1 ? letter : '_')).join('');
  const numbers = Array.from(text.matchAll(NUMBER), ({ 0: number, index }) => [index, index + number.length]);
  const isInNumber = (at: number): boolean => numbers.some(([from = 0, to = 0]) => from < at && at < to);
  let start = Math.floor(n / 2);
  let end = letters.length - (n - start);
  while (start > 1 && isInNumber(end)) {
    start -= 1;
    end -= 1;
  }
  while (start > 1 && isInNumber(start)) start -= 1;
  return [
    shown(letters.slice(0, start).join('')),
    hidden(letters.slice(start, end).join('')),
    shown(letters.slice(end).join('')),
  ];
}

/** The least share of a line that words fill; where they fill less, the cut is within a word. */
const LEAST_FILLED = 0.5;

/** The beginning of a name in a line that ends with dots, and its end in the next; both are whole words, if possible. */
function inTwoLines(name: string, start: string, perLine: number): Part[] {
  const rest = name.slice(start.length);
  const room = Math.max(2, Math.floor(perLine * SURELY) - 1);
  const letters = Array.from(rest);
  const first = wordsOf(rest, start === '' ? room : room - 2, 'start');
  const left = letters.length - Array.from(first).length;
  const last = wordsOf(rest, Math.min(room, left - 1), 'end');
  return [
    ...(start === '' ? [] : [hidden(start)]),
    shown(first),
    { ...hidden(rest.slice(first.length, rest.length - last.length)), endsLine: true },
    shown(last),
  ];
}

/** The words at the start or end of a text that fit into `room` letters; letters, where words fill too little of it. */
function wordsOf(text: string, room: number, kept: 'start' | 'end'): string {
  const parts = text.split(SEPARATORS);
  if (kept === 'end') parts.reverse();
  const words: string[] = [];
  let n = 0;
  for (const part of parts) {
    n += Array.from(part).length;
    if (n > room) break;
    words.push(part);
  }
  if (kept === 'end') words.reverse();
  const whole = words.join('');
  if (Array.from(whole).length >= LEAST_FILLED * room) return whole;
  const letters = Array.from(text);
  return (kept === 'start' ? letters.slice(0, room) : letters.slice(letters.length - room)).join('');
}

/** A score in a column: room for the missing decimals, so that points stand below each other. */
export function Score({ value, early = false }: { value: number | null | undefined; early?: boolean }) {
  const text = formatScore(value);
  const decimals = text.split('.')[1]?.length;
  return (
    <span
      className={`num ${classes.score}`}
      data-room={decimals === undefined ? '.00' : '0'.repeat(2 - decimals)}
    >
      {text}
      {early && <Early />}
    </span>
  );
}

/** Marks a score that is that of the first, short episodes. */
export function Early() {
  return (
    <em
      className={classes.early}
      title="Most agent steps so far are those of episodes that have not ended: this is the score of short episodes, and enters no rank, group or verdict."
    >
      {' early'}
    </em>
  );
}

type Props = {
  at: string | null | undefined;
  /** Without "ago", for a column of ages. */
  short?: boolean;
};

/** A relative time that updates itself, with the exact time on hover. */
export function RelativeTime({ at, short = false }: Props) {
  const now = useNow();
  if (!at) return <span className="muted">–</span>;
  return (
    <time dateTime={at} title={formatExact(at)} className="nowrap">
      {short ? formatAge((now - new Date(at).getTime()) / 1000) : formatAgo(at, now)}
    </time>
  );
}
