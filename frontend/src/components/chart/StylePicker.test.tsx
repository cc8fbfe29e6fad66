import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import { StylePicker } from './StylePicker';

afterEach(cleanup);

it('the swatch opens a palette in which arrow keys move and Enter chooses', async () => {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  const names = Array.from({ length: 10 }, (_, at) => `colour ${at}`);
  const colours = Array.from({ length: 20 }, (_, at) => `#0000${at + 10}`);
  client.setQueryData(keys.palette(), { light: colours, dark: colours, names, symbols: ['', 'square', 'x'] });
  const onStyle = vi.fn();
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <StylePicker name="run a" style={1} onStyle={onStyle} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  fireEvent.click(screen.getByRole('button', { name: 'Style of run a: colour 1' }));
  const current = await screen.findByRole('button', { name: 'colour 1', pressed: true });
  await waitFor(() => expect(document.activeElement).toBe(current));
  fireEvent.keyDown(current, { key: 'ArrowRight' });
  fireEvent.keyDown(document.activeElement ?? current, { key: 'ArrowDown' });
  expect(document.activeElement?.getAttribute('aria-label')).toBe('colour 2, second shade, square');
  fireEvent.click(document.activeElement ?? current);
  expect(onStyle).toHaveBeenCalledExactlyOnceWith(12);
});
