import { MantineProvider } from '@mantine/core';
import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiProblem } from '@/api/problem';
import { showToast, Toasts } from './toasts';

beforeEach(() => {
  render(
    <MantineProvider>
      <Toasts />
    </MantineProvider>,
  );
  dismissAll();
});

afterEach(() => {
  vi.useRealTimers();
  dismissAll();
  cleanup();
});

function dismissAll(): void {
  for (const button of screen.queryAllByRole('button', { name: 'Dismiss' })) fireEvent.click(button);
}

describe('a toast', () => {
  it('undoes the action once, and is gone', async () => {
    const undo = vi.fn(() => Promise.resolve());
    act(() => showToast('Archived 2 runs.', undo));
    fireEvent.click(screen.getByRole('button', { name: 'Undo' }));
    await waitFor(() => expect(screen.queryByText('Archived 2 runs.')).toBeNull());
    expect(undo).toHaveBeenCalledTimes(1);
  });

  it('shows why the action could not be undone', async () => {
    const undo = () => Promise.reject(new ApiProblem(404, 'Not Found', 'there is no deleted run'));
    act(() => showToast('Deleted a.', undo));
    fireEvent.click(screen.getByRole('button', { name: 'Undo' }));
    expect(await screen.findByText('there is no deleted run')).toBeDefined();
    expect(screen.queryByRole('button', { name: 'Undo' })).toBeNull();
  });

  it('leaves by itself, but not while it is pointed at', () => {
    vi.useFakeTimers();
    act(() => showToast('Deleted a.'));
    const toast = screen.getByText('Deleted a.');
    fireEvent.mouseEnter(toast.parentElement ?? toast);
    act(() => void vi.advanceTimersByTime(60_000));
    expect(screen.queryByText('Deleted a.')).not.toBeNull();
    fireEvent.mouseLeave(toast.parentElement ?? toast);
    act(() => void vi.advanceTimersByTime(60_000));
    expect(screen.queryByText('Deleted a.')).toBeNull();
  });
});
