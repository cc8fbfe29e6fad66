import { useTimeout } from '@mantine/hooks';
import { useState, type MouseEvent, type ReactNode, type RefObject } from 'react';

const COPIED_MS = 2000;

/** Copies without the clipboard API, which pages over plain HTTP lack; returns whether that worked. */
function copyBySelection(text: string, button: HTMLElement): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.readOnly = true;
  area.style.position = 'fixed';
  // Beside the button: a dialog takes the focus back from outside it.
  button.after(area);
  area.focus({ preventScroll: true });
  area.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const isCopied = document.execCommand('copy');
  area.remove();
  button.focus({ preventScroll: true });
  return isCopied;
}

async function copyText(text: string, button: HTMLElement): Promise<boolean> {
  if ('clipboard' in navigator) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Not permitted.
    }
  }
  return copyBySelection(text, button);
}

type Props = {
  value: string;
  /** The element that shows the text, which is selected where it cannot be copied. */
  shown: RefObject<HTMLElement | null>;
  children: (state: { copied: boolean; copy: (event: MouseEvent<HTMLElement>) => void }) => ReactNode;
};

/** The state of a button that copies a text, over plain HTTP too. */
export function CopyButton({ value, shown, children }: Props) {
  const [copied, setCopied] = useState(false);
  const { start } = useTimeout(() => setCopied(false), COPIED_MS);
  const copy = async (button: HTMLElement): Promise<void> => {
    const isCopied = await copyText(value, button);
    setCopied(isCopied);
    if (isCopied) start();
    else if (shown.current) getSelection()?.selectAllChildren(shown.current);
  };
  return children({ copied, copy: ({ currentTarget }) => void copy(currentTarget) });
}
