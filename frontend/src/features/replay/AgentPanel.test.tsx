import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { AgentPanel } from './AgentPanel';

const asked = vi.hoisted(() => {
  const sorts: (string | null)[] = [];
  // The client keeps the function that it finds when it is loaded.
  globalThis.fetch = (request) => {
    const url = new URL((request as Request).url);
    if (url.pathname.endsWith('/episodes')) sorts.push(url.searchParams.get('sort'));
    return new Promise(() => undefined);
  };
  return sorts;
});

afterEach(cleanup);

it('the agent of a finished run starts with its best recorded episode, named as such', () => {
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <AgentPanel run="R" running={false} ended selected={undefined} onDeselect={() => undefined} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  expect(
    screen.getAllByRole('radio').map((radio) => (radio as HTMLInputElement).labels?.[0]?.textContent),
  ).toEqual(['Latest', 'Best recorded']);
  expect(screen.getByRole<HTMLInputElement>('radio', { name: 'Best recorded' }).checked).toBe(true);
  expect(asked).toEqual(['-episode_return']);
  fireEvent.click(screen.getByRole('radio', { name: 'Latest' }));
  expect(asked).toEqual(['-episode_return', '-agent_steps']);
});
