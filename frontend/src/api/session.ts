/**
 * What the page keeps of a session besides its secret: a ticket. In an address it takes the place of the secret's
 * header for what a browser requests without headers of the page: streams, media and downloads.
 */
import { useMemo } from 'react';
import { forgetRecent } from '@/lib/recent';
import { forgetSecret, keepSecret } from './pageSecret';

/** A ticket is valid for an hour. */
const RENEW_AFTER_MS = 30 * 60_000;

let ticket: string | null = null;
let renewedAt = -Infinity;

/** Keeps what a response of `/auth` gives the page. */
export function keepSession(body: { page_secret?: string; ticket?: string | null }): void {
  if (body.page_secret !== undefined) keepSecret(body.page_secret);
  ticket = body.ticket ?? null;
  renewedAt = Date.now();
}

export function forgetSession(): void {
  ticket = null;
  renewedAt = -Infinity;
  forgetSecret();
  forgetRecent();
}

/** Whether the ticket has to be renewed; the first one comes with the page's first request. */
export const isTicketOld = (): boolean => ticket !== null && Date.now() - renewedAt > RENEW_AFTER_MS;

/** Makes the next renewal get another ticket, however young the present one is. */
export const distrustTicket = (): void => {
  renewedAt = -Infinity;
};

/** An address of the API for what sends no header. */
export function withTicket(url: string): string {
  if (ticket === null) return url;
  const bare = url.replace(/[?&]ticket=[^&]*$/, '');
  return `${bare}${bare.includes('?') ? '&' : '?'}ticket=${encodeURIComponent(ticket)}`;
}

/**
 * The address of a video, with the ticket of the moment at which the video became ready; it stays the same while the
 * video is shown, so that a new ticket does not reload it.
 */
export const useMediaUrl = (url: string, isReady = true): string =>
  // eslint-disable-next-line react-hooks/exhaustive-deps -- a ticket of before may have expired
  useMemo(() => withTicket(url), [url, isReady]);
