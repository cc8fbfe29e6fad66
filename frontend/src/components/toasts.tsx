import { Button, CloseButton } from '@mantine/core';
import { useEffect, useState, useSyncExternalStore } from 'react';
import { asProblem } from '@/api/problem';
import classes from './toasts.module.css';

type Toast = { id: number; text: string; undo: (() => Promise<unknown>) | undefined };

const SHOWN_MS = 15_000;
const MAX_TOASTS = 3;

let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function update(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const dismiss = (id: number): void => update(toasts.filter((toast) => toast.id !== id));

/** Reports a completed action at the bottom of any page, with a way to undo it. */
export function showToast(text: string, undo?: () => Promise<unknown>): void {
  lastId += 1;
  update([...toasts, { id: lastId, text, undo }].slice(-MAX_TOASTS));
}

/** The reports of completed actions. */
export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div role="status" aria-label="Completed actions" className={classes.toasts}>
      {shown.map((toast) => (
        <ToastRow key={toast.id} toast={toast} />
      ))}
    </div>
  );
}

function ToastRow({ toast: { id, text, undo } }: { toast: Toast }) {
  const [held, setHeld] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    if (held || busy) return undefined;
    const timer = setTimeout(() => dismiss(id), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [held, busy, id]);
  const takeBack = async (): Promise<void> => {
    setBusy(true);
    try {
      await undo?.();
      dismiss(id);
    } catch (error) {
      setProblem(asProblem(error).detail || 'It could not be undone.');
      setBusy(false);
    }
  };
  return (
    <div
      className={classes.toast}
      onMouseEnter={() => setHeld(true)}
      onMouseLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
    >
      <span className="grow">{problem ?? text}</span>
      {undo && problem === null && (
        <Button variant="subtle" loading={busy} onClick={() => void takeBack()}>
          Undo
        </Button>
      )}
      <CloseButton size="sm" aria-label="Dismiss" onClick={() => dismiss(id)} />
    </div>
  );
}
