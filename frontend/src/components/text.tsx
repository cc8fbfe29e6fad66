import { Fragment } from 'react';
import { formatAge, formatAgo, formatExact, formatScore } from '@/lib/format';
import { useNow } from '@/lib/hooks';
import classes from './text.module.css';

/** Longer parts of a name break within. */
const MAX_UNBROKEN = 24;

/** A name in as many lines as it needs, which break between its parts. */
export function Name({ name, title }: { name: string; title?: string }) {
  return (
    <span className="whole" title={title}>
      {name.split(AFTER_SEPARATOR).map((part, at) => (
        <Fragment key={at}>
          {at > 0 && ' '}
          {part.length > MAX_UNBROKEN ? part : <span className="nowrap">{part}</span>}
        </Fragment>
      ))}
    </span>
  );
}

/** The service joins the parts of names by ` · `. */
const AFTER_SEPARATOR = /(?<= ·) /u;

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
