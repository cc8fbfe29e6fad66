import { Modal } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { MouseEvent, ReactNode } from 'react';
import { renewTicket } from '@/api/client';
import { toProblem } from '@/api/problem';
import { sessionHeaders } from '@/api/pageSecret';
import { withTicket } from '@/api/session';
import { Problem } from './feedback';

const POLL_MS = 1000;

/**
 * Lets the browser download a file that the service may refuse to send, or that a worker has to write first.
 *
 * The first request is for the status alone, and is ended once that is known: a file of any size goes to the
 * disk and not through the page's memory.
 */
async function download(url: string): Promise<void> {
  const first = new AbortController();
  await renewTicket();
  const response = await fetch(url, { headers: sessionHeaders(), signal: first.signal });
  if (!response.ok) {
    const body: unknown = await response.json().catch(() => undefined);
    throw toProblem(response.status, body);
  }
  first.abort();
  if (response.status === 202) {
    await new Promise((resolve) => {
      setTimeout(resolve, POLL_MS);
    });
    // What fails now is not begun once more.
    await download(url.replace('&again=true', ''));
    return;
  }
  const link = document.createElement('a');
  link.href = withTicket(url);
  link.download = '';
  link.click();
}

type Download = {
  /** For a link to the file. */
  onClick: (event: MouseEvent<HTMLAnchorElement>) => void;
  /** Whether the answer is awaited. */
  isPending: boolean;
  /** Why it was refused. */
  problem: ReactNode;
};

/** Downloads the file of a link and shows why the service refuses it. */
export function useDownload(): Download {
  const work = useMutation({ mutationFn: download });
  return {
    onClick: (event) => {
      event.preventDefault();
      if (!work.isPending) work.mutate(event.currentTarget.href);
    },
    isPending: work.isPending,
    problem: (
      <Modal opened={work.isError} onClose={work.reset} title="Export failed">
        <Problem error={work.error} />
      </Modal>
    ),
  };
}
