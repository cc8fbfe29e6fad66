import { useId, type KeyboardEvent } from 'react';
import classes from './launch.module.css';

/** An option of a group, with paragraphs that are shown while it is selected. */
export type Choice = {
  id: string;
  title: string;
  text: readonly (string | undefined)[];
  /** Why nothing can be started with it. */
  lacking?: string | null;
};

type Props = {
  label: string;
  choices: readonly Choice[];
  value: string;
  onChange: (id: string) => void;
  /** Side by side instead of one below the other. */
  wide?: boolean;
};

/** A compact radio group: titles, and the description of the selected one. */
export function Choices({ label, choices, value, onChange, wide = false }: Props) {
  const group = useId();
  const selected = choices.find(({ id }) => id === value);
  const onKey = (event: KeyboardEvent<HTMLDivElement>): void => {
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const index = choices.findIndex(({ id }) => id === value);
    const next = choices[(index + by + choices.length) % choices.length];
    if (!next) return;
    onChange(next.id);
    document.getElementById(group + next.id)?.focus();
  };
  return (
    <>
      <div
        role="radiogroup"
        aria-label={label}
        className={wide ? classes.wideChoices : classes.choices}
        onKeyDown={onKey}
      >
        {choices.map(({ id, title, text, lacking }, index) => (
          <button
            key={id}
            id={group + id}
            type="button"
            role="radio"
            aria-checked={id === value}
            // Without a selected option the first can be reached.
            tabIndex={id === value || (!selected && index === 0) ? 0 : -1}
            className={classes.choice}
            data-lacking={Boolean(lacking)}
            title={lacking ?? text[0]}
            onClick={() => onChange(id)}
          >
            {title}
            {lacking && <span className="muted"> not installed</span>}
          </button>
        ))}
      </div>
      <div className={`muted ${classes.description}`} aria-live="polite">
        {selected?.text.filter(Boolean).map((paragraph) => (
          <p key={paragraph}>{paragraph}</p>
        ))}
      </div>
    </>
  );
}
