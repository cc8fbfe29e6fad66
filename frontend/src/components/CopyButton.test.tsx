import { MantineProvider } from '@mantine/core';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CopyCode } from './CopyCode';

const COMMAND = 'pip install callboard';
let copied: string[] = [];

/** A page over plain HTTP, without the clipboard API, in a browser that copies what is selected, or refuses to. */
function showOverHttp(permits: boolean): void {
  copied = [];
  vi.stubGlobal('navigator', { userAgent: '' });
  Object.assign(document, {
    execCommand: () => {
      const { value, selectionStart, selectionEnd } = document.activeElement as HTMLTextAreaElement;
      if (permits) copied.push(value.slice(selectionStart, selectionEnd));
      return permits;
    },
  });
  render(
    <MantineProvider env="test">
      <CopyCode code={COMMAND} label="Command" />
    </MantineProvider>,
  );
}

beforeEach(() => getSelection()?.removeAllRanges());
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

it('CopyButton copies over plain HTTP, and keeps the focus', async () => {
  showOverHttp(true);
  fireEvent.click(screen.getByRole('button', { name: 'Copy command' }));
  const button = await screen.findByRole('button', { name: 'Copied' });
  expect(copied).toEqual([COMMAND]);
  expect(document.activeElement).toBe(button);
  expect(screen.queryByRole('textbox')).toBeNull();
});

it('CopyButton selects the text where the browser does not copy', async () => {
  showOverHttp(false);
  fireEvent.click(screen.getByRole('button', { name: 'Copy command' }));
  await waitFor(() => expect(getSelection()?.toString()).toBe(COMMAND));
  expect(screen.queryByRole('button', { name: 'Copied' })).toBeNull();
});
