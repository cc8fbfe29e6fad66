/**
 * The page's part of a session.
 *
 * A browser sends a cookie to every port of its host, and another user of the machine may listen there. So the
 * service also asks for a secret that the page keeps in the local storage of its origin, as a header; a ticket
 * in the address takes the header's place where a browser sends none: streams, media and downloads.
 */
import { useMemo } from 'react';
import { BASE } from '@/lib/base';
import { forgetRecentQueries } from '@/lib/recentQueries';

/** Services below different paths of a host share its storage. */
const KEY = `callboard-page-secret${BASE}`;
const FRAGMENT = /^#page_secret=([\w-]{1,200})$/;
export const PAGE_SECRET_HEADER = 'X-Page-Secret';

/** A ticket is valid for an hour. */
const RENEW_AFTER_MS = 30 * 60_000;

/** Without a local storage the secret lasts as long as the page. */
let unstored: string | null = null;
let ticket: string | null = null;
let renewedAt = -Infinity;

function keepSecret(secret: string): void {
  unstored = secret;
  try {
    localStorage.setItem(KEY, secret);
  } catch {
    // Storage is blocked or full.
  }
}

function readSecret(): string | null {
  try {
    return localStorage.getItem(KEY) ?? unstored;
  } catch {
    return unstored;
  }
}

/** Takes the secret that a login by link or provider has put into the address, and removes it there. */
export function takeSecret(): void {
  const secret = FRAGMENT.exec(location.hash)?.[1];
  if (secret === undefined) return;
  keepSecret(secret);
  history.replaceState(history.state, '', location.pathname + location.search);
}

/** Keeps what a response of `/auth` gives the page. */
export function keepSession(body: { page_secret?: string; ticket?: string | null }): void {
  if (body.page_secret !== undefined) keepSecret(body.page_secret);
  ticket = body.ticket ?? null;
  renewedAt = Date.now();
}

export function forgetSession(): void {
  unstored = ticket = null;
  renewedAt = -Infinity;
  forgetRecentQueries();
  try {
    localStorage.removeItem(KEY);
  } catch {
    // It was not stored.
  }
}

/** The header of every request to the API. */
export function sessionHeaders(): Record<string, string> {
  const secret = readSecret();
  return secret === null ? {} : { [PAGE_SECRET_HEADER]: secret };
}

/** Whether the ticket has to be renewed; the first one comes with the page's first request. */
export const isTicketOld = (): boolean => ticket !== null && Date.now() - renewedAt > RENEW_AFTER_MS;

/** An address of the API for what sends no header. */
export function withTicket(url: string): string {
  if (ticket === null) return url;
  const bare = url.replace(/[?&]ticket=[^&]*$/, '');
  return `${bare}${bare.includes('?') ? '&' : '?'}ticket=${encodeURIComponent(ticket)}`;
}

/** The address of a video; it stays the same while the video is shown, so that a new ticket does not reload it. */
export const useMediaUrl = (url: string): string => useMemo(() => withTicket(url), [url]);
