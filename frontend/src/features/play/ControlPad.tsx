import {
  IconArrowBigDown,
  IconArrowBigLeft,
  IconArrowBigRight,
  IconArrowBigUp,
  IconChevronsLeft,
  IconChevronsRight,
  IconCircleFilled,
  type TablerIcon,
} from '@tabler/icons-react';
import type { PointerEvent } from 'react';
import type { Control } from './controls';
import classes from './play.module.css';

const BUTTONS: Record<Control, { label: string; keys: string; icon: TablerIcon }> = {
  up: { label: 'Up', keys: '↑ or W', icon: IconArrowBigUp },
  down: { label: 'Down', keys: '↓ or S', icon: IconArrowBigDown },
  left: { label: 'Left', keys: '← or A', icon: IconArrowBigLeft },
  right: { label: 'Right', keys: '→ or D', icon: IconArrowBigRight },
  fire: { label: 'Fire', keys: 'Space', icon: IconCircleFilled },
  strafeLeft: { label: 'Step left', keys: 'Q', icon: IconChevronsLeft },
  strafeRight: { label: 'Step right', keys: 'E', icon: IconChevronsRight },
};

/** A game with these alone needs no rows for the others. */
const FLAT: ReadonlySet<Control> = new Set(['left', 'right', 'fire']);

type Props = {
  controls: readonly Control[];
  held: ReadonlySet<Control>;
  onTouch: (control: Control, down: boolean) => void;
};

/** The controls of the game: lit while they are held, by whatever means, and pressed by touch. */
export function ControlPad({ controls, held, onTouch }: Props) {
  const press =
    (control: Control, down: boolean) =>
    (event: PointerEvent<HTMLButtonElement>): void => {
      event.preventDefault();
      if (down) event.currentTarget.setPointerCapture(event.pointerId);
      onTouch(control, down);
    };
  return (
    <div
      className={classes.pad}
      role="group"
      aria-label="Controls"
      data-steers={!controls.includes('fire') || undefined}
      data-flat={controls.every((control) => FLAT.has(control)) || undefined}
    >
      {controls.map((control) => {
        const { label, keys, icon: Icon } = BUTTONS[control];
        return (
          <button
            key={control}
            type="button"
            className={classes.control}
            data-control={control}
            data-held={held.has(control) || undefined}
            aria-pressed={held.has(control)}
            aria-label={`${label}, ${keys}`}
            title={`${label}: ${keys}`}
            onPointerDown={press(control, true)}
            onPointerUp={press(control, false)}
            onPointerCancel={press(control, false)}
            onLostPointerCapture={() => onTouch(control, false)}
            onContextMenu={(event) => event.preventDefault()}
          >
            <Icon size={20} aria-hidden="true" />
            <span className={classes.keys}>{keys}</span>
          </button>
        );
      })}
    </div>
  );
}
