import { MantineProvider } from '@mantine/core';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { ShowMore } from './controls';

afterEach(cleanup);

const show = (isFetchingNextPage: boolean, fetchNextPage = vi.fn()) =>
  render(<ShowMore query={{ hasNextPage: true, isFetchingNextPage, fetchNextPage }} />, {
    wrapper: ({ children }) => <MantineProvider>{children}</MantineProvider>,
  });

it('ShowMore fetches the next page when clicked', () => {
  const fetchNextPage = vi.fn();
  show(false, fetchNextPage);
  fireEvent.click(screen.getByRole('button', { name: 'Show more' }));
  expect(fetchNextPage).toHaveBeenCalledOnce();
});

it('ShowMore keeps focus and does nothing while it fetches', () => {
  const fetchNextPage = vi.fn();
  show(true, fetchNextPage);
  const button = screen.getByRole('button', { name: 'Show more' });
  button.focus();
  fireEvent.click(button);
  expect(document.activeElement).toBe(button);
  expect(button.getAttribute('aria-disabled')).toBe('true');
  expect(fetchNextPage).not.toHaveBeenCalled();
});
