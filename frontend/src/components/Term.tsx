import { Popover } from '@mantine/core';
import { IconHelpCircle } from '@tabler/icons-react';
import { memo, useId } from 'react';
import { served } from '@/lib/base';
import { entryOf, type TermId } from './glossary';
import classes from './Term.module.css';

type Props = {
  /** The entry of the glossary; default: the one of this name. */
  id?: TermId | undefined;
  /** The term as the page shows it. */
  children: string;
  /** Whether it is a question mark labelled with the text, for use beside a control that names the term. */
  icon?: boolean;
};

/** A term that explains itself: a button that opens a popover. A text that the glossary lacks stays a text. */
export const Term = memo(function Term({ id, children, icon = false }: Props) {
  const text = useId();
  const entry = entryOf(id, children);
  if (!entry) return children;
  return (
    <Popover position="bottom-start" width={300} shadow="md" withinPortal trapFocus returnFocus>
      <Popover.Target>
        <button
          type="button"
          className={icon ? classes.icon : classes.term}
          {...(icon ? { 'aria-label': children } : {})}
        >
          {icon ? <IconHelpCircle size={16} stroke={1.75} aria-hidden="true" /> : children}
        </button>
      </Popover.Target>
      <Popover.Dropdown className={classes.popover} aria-label={entry.term}>
        <strong>{entry.term}</strong>
        <p id={text}>{entry.text}</p>
        <a href={served(`/help/${entry.page}`)} aria-describedby={text}>
          More in the documentation
        </a>
      </Popover.Dropdown>
    </Popover>
  );
});

/** The terms of a table or panel whose controls have no room for popovers of their own. */
export function Terms({ ids }: { ids: readonly TermId[] }) {
  const entries = ids.flatMap((id) => entryOf(id, id) ?? []);
  return (
    <p className={classes.terms}>
      Terms:{' '}
      {entries.map(({ term }, index) => (
        <span key={term}>
          {index > 0 && ', '}
          <Term>{term}</Term>
        </span>
      ))}
    </p>
  );
}
