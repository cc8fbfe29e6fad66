import { Fragment, useLayoutEffect, useRef, useState } from 'react';
import { formatAge, formatAgo, formatExact, formatScore } from '@/lib/format';
import { useNow } from '@/lib/hooks';
import classes from './text.module.css';

/** Shorter names fit nearly everywhere, and are not measured. */
const MIN_MEASURED = 16;

/** The share of lines that letters fill: two lines lose some room where the first one breaks. */
const FILLED = { 1: 1, 2: 0.94 } as const;

type Fit = {
  name: string;
  /** The share of the name that has room. */
  share: number;
  /** Whether its lines break between words. Otherwise they are filled. */
  words: boolean;
};

/**
 * A name in a single element, so that the browser's search finds it and copying keeps it whole.
 *
 * Without room for all of it, `repeated` is hidden, a beginning that stands beside the name in words of its own,
 * and if that is not enough, the middle: similar names differ at their ends. The title is the name's tooltip.
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
  useLayoutEffect(() => {
    const { current: span } = element;
    if (!span || name.length < MIN_MEASURED) return;
    if (fit?.name === name) {
      settledWidth.current = span.clientWidth; // a table cell is narrower without the middle
      return;
    }
    if (lines === 2 && span.scrollHeight <= span.clientHeight) {
      settledWidth.current = span.clientWidth;
      setFit({ name, share: 1, words: true });
      return;
    }
    const range = document.createRange(); // with the whole name
    range.selectNodeContents(span);
    const width = widthOf(range.getClientRects());
    setFit({
      name,
      share: width === 0 ? 1 : (lines * span.clientWidth * FILLED[lines]) / width,
      words: false,
    });
  }, [name, lines, fit]);
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
  const parts = fit?.name === name && fit.share < 1 ? partsOf(name, fit.share, repeated) : null;
  const filled = fit?.name === name && !fit.words ? classes.filled : '';
  return (
    <span
      ref={element}
      title={title}
      className={lines === 1 ? `ellipsis ${classes.line}` : `${classes.lines} ${filled}`}
    >
      {parts
        ? parts.map(({ text, isHidden }, at) =>
            isHidden ? (
              <span key={at} className={classes.cut}>
                {text}
              </span>
            ) : (
              <Fragment key={at}>{text}</Fragment>
            ),
          )
        : lines === 1
          ? name
          : name.split(/(?<=[=_,/])/u).map((part, at) => (
              <Fragment key={at}>
                {at > 0 && <wbr />}
                {part}
              </Fragment>
            ))}
    </span>
  );
}

/** The sum of the lines' widths. Chromium describes a line that it cuts twice: whole, and up to the dots. */
function widthOf(rects: DOMRectList): number {
  const lines = new Map<number, [number, number]>();
  for (const { top, left, right } of rects) {
    const [start, end] = lines.get(top) ?? [left, right];
    lines.set(top, [Math.min(start, left), Math.max(end, right)]);
  }
  return [...lines.values()].reduce((sum, [start, end]) => sum + end - start, 0);
}

type Part = { text: string; isHidden: boolean };

/** What is shown and what is hidden of a name of which only a share has room. */
function partsOf(name: string, share: number, repeated: string): Part[] {
  const start = repeated !== '' && name.startsWith(repeated) && name !== repeated ? repeated : '';
  // Letters differ in width, and the dots take room as well.
  const room = Math.max(2, Math.floor(Array.from(name).length * share * 0.92) - 2);
  const rest = Array.from(name.slice(start.length));
  const parts =
    rest.length <= room
      ? [{ text: rest.join(''), isHidden: false }]
      : inMiddle(rest, Math.max(2, room - (start === '' ? 0 : 2)));
  return start === '' ? parts : [{ text: start, isHidden: true }, ...parts];
}

/** Start, hidden middle and end of a name, of which n letters have room. */
function inMiddle(letters: readonly string[], n: number): Part[] {
  const start = Math.floor(n / 2);
  const end = letters.length - (n - start);
  return [
    { text: letters.slice(0, start).join(''), isHidden: false },
    { text: letters.slice(start, end).join(''), isHidden: true },
    { text: letters.slice(end).join(''), isHidden: false },
  ];
}

/** A score in a column: room for the missing decimals, so that points stand below each other. */
export function Score({ value }: { value: number | null | undefined }) {
  const text = formatScore(value);
  const decimals = text.split('.')[1]?.length;
  return (
    <span
      className={`num ${classes.score}`}
      data-room={decimals === undefined ? '.00' : '0'.repeat(2 - decimals)}
    >
      {text}
    </span>
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
