import { type KeyboardEvent, useId } from 'react';
import classes from './launch.module.css';

export type Choice = { id: string; title: string; text: string };

type Props = { label: string; choices: readonly Choice[]; value: string; onChange: (id: string) => void };

/** One of a few, each with a line on what it is for. Arrows move the choice, as in any radio group. */
export function Choices({ label, choices, value, onChange }: Props) {
  const group = useId();
  const onKey = (event: KeyboardEvent<HTMLDivElement>): void => {
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const at = choices.findIndex(({ id }) => id === value);
    const next = choices[(at + by + choices.length) % choices.length];
    if (!next) return;
    onChange(next.id);
    document.getElementById(group + next.id)?.focus();
  };
  return (
    <div role="radiogroup" aria-label={label} style={{ display: 'grid', gap: 8 }} onKeyDown={onKey}>
      {choices.map(({ id, title, text }) => (
        <button
          key={id}
          id={group + id}
          type="button"
          role="radio"
          aria-checked={id === value}
          tabIndex={id === value ? 0 : -1}
          className={classes.choice}
          onClick={() => onChange(id)}
        >
          {title}
          <small>{text}</small>
        </button>
      ))}
    </div>
  );
}
