import { Modal } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { MouseEvent, ReactNode } from 'react';
import { renewTicket } from '@/api/client';
import { toProblem } from '@/api/problem';
import { sessionHeaders } from '@/api/pageSecret';
import { withTicket } from '@/api/session';
import { Problem } from './feedback';

/**
 * Lets the browser download a file that the service may refuse to send.
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
  const link = document.createElement('a');
  link.href = withTicket(url);
  link.download = '';
  link.click();
}

type Download = {
  /** For a link to the file. */
  onClick: (event: MouseEvent<HTMLAnchorElement>) => void;
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
    problem: (
      <Modal opened={work.isError} onClose={work.reset} title="Export failed">
        <Problem error={work.error} />
      </Modal>
    ),
  };
}
