import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { ChartMenu } from './ChartMenu';
import type { ExportSource } from './export/source';

afterEach(cleanup);

const source: ExportSource = {
  name: 'loss',
  title: 'Value loss',
  key: ['loss'],
  figure: () => new Promise(() => undefined),
  file: () => new Promise(() => undefined),
};

it('ChartMenu opens the export of its figure', async () => {
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <ChartMenu source={source} name="loss" log={false} onLog={() => undefined} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  fireEvent.click(screen.getByRole('button', { name: 'Options for loss' }));
  fireEvent.click(await screen.findByRole('menuitem', { name: 'Export figure…' }));
  expect(await screen.findByRole('dialog', { name: 'Export figure: Value loss' })).toBeTruthy();
  expect(await screen.findByLabelText('Format')).toBeTruthy();
});
