import { useCallback, useEffect, useRef, useState } from 'react';
import { controlOf, heldByGamepad, type Control } from './controls';

type Source = 'keys' | 'touch' | 'gamepad';
const NONE: ReadonlySet<Control> = new Set();
/** The elements that Space presses when they have the focus; not the buttons of the game's controls. */
const SPACE_PRESSES = 'button:not([data-control]), a';

type HeldControls = {
  held: ReadonlySet<Control>;
  /** Presses or releases a control by touch. */
  touch: (control: Control, down: boolean) => void;
};

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof Element && target.matches('input, textarea, select, [contenteditable]');

/** The gamepads; none where the browser does not offer them, as Firefox over plain HTTP. */
function gamepads(): (Gamepad | null)[] {
  try {
    return (navigator as Partial<Navigator>).getGamepads?.() ?? [];
  } catch {
    return []; // a permissions policy forbids it
  }
}

/** The controls that are held down by keyboard, touch and gamepad together. */
export function useHeldControls(enabled: boolean): HeldControls {
  const sources = useRef<Record<Source, Set<Control>>>({
    keys: new Set(),
    touch: new Set(),
    gamepad: new Set(),
  });
  const [held, setHeld] = useState<ReadonlySet<Control>>(NONE);

  const update = useCallback(() => {
    const { keys, touch, gamepad } = sources.current;
    const all = new Set([...keys, ...touch, ...gamepad]);
    setHeld((before) =>
      before.size === all.size && [...all].every((control) => before.has(control)) ? before : all,
    );
  }, []);

  const touch = useCallback(
    (control: Control, down: boolean) => {
      if (down) sources.current.touch.add(control);
      else sources.current.touch.delete(control);
      update();
    },
    [update],
  );

  useEffect(() => {
    if (!enabled) return;
    const all = sources.current;
    const { keys, touch: touched } = all;
    const onKey = (event: KeyboardEvent): void => {
      const control = controlOf(event.code);
      if (control === undefined) return;
      if (!event.isTrusted) return; // a script of the page, not a person
      // The control may have been pressed before the modifier, or before the focus moved to a field.
      if (event.type === 'keyup' && keys.delete(control)) update();
      if (event.ctrlKey || event.altKey || event.metaKey || isTyping(event.target)) return;
      if (event.code === 'Space' && (event.target as Element).matches(SPACE_PRESSES)) {
        keys.delete(control); // it may have been pressed before the focus moved
        update();
        return;
      }
      event.preventDefault();
      if (event.type === 'keydown') {
        keys.add(control);
        update();
      }
    };
    const release = (): void => {
      keys.clear();
      touched.clear();
      update();
    };
    let frame = 0;
    const poll = (): void => {
      const pad = gamepads().find((candidate) => candidate !== null);
      all.gamepad = new Set(pad ? heldByGamepad(pad) : []);
      update();
      frame = requestAnimationFrame(poll);
    };
    const begin = (): void => {
      cancelAnimationFrame(frame);
      poll();
    };
    window.addEventListener('keydown', onKey);
    window.addEventListener('keyup', onKey);
    window.addEventListener('blur', release);
    window.addEventListener('gamepadconnected', begin);
    if (gamepads().some((pad) => pad !== null)) begin();
    return () => {
      window.removeEventListener('keydown', onKey);
      window.removeEventListener('keyup', onKey);
      window.removeEventListener('blur', release);
      window.removeEventListener('gamepadconnected', begin);
      cancelAnimationFrame(frame);
      all.gamepad.clear();
      release();
    };
  }, [enabled, update]);

  return { held, touch };
}
