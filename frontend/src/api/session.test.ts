import { renderHook } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { loginNonce, sessionHeaders, takeSecret } from './pageSecret';
import { forgetSession, isTicketOld, keepSession, useMediaUrl, withTicket } from './session';

beforeEach(forgetSession);
afterEach(() => {
  forgetSession();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

it('the address of a video has the ticket of the moment at which it became ready, and keeps it', () => {
  keepSession({ ticket: 'old' });
  const { result, rerender } = renderHook(({ isReady }) => useMediaUrl('/v', isReady), {
    initialProps: { isReady: false },
  });
  keepSession({ ticket: 'new' });
  rerender({ isReady: true });
  expect(result.current).toBe('/v?ticket=new');
  keepSession({ ticket: 'newer' });
  rerender({ isReady: true });
  expect(result.current).toBe('/v?ticket=new');
});

describe('the secret of a page', () => {
  it('is taken from the fragment of the address and removed there', () => {
    history.replaceState(null, '', `/hosts?a=1#page_secret=abc-_1&nonce=${loginNonce()}`);
    takeSecret();
    expect(location.href).toMatch(/\/hosts\?a=1$/);
    expect(sessionHeaders()).toEqual({ 'X-Page-Secret': 'abc-_1' });
  });

  it.each(['', '&nonce=theirs'])(
    'is not believed in an address that no login of this tab has asked for: %s',
    (nonce) => {
      keepSession({ page_secret: 'kept' });
      loginNonce();
      history.replaceState(null, '', `/#page_secret=theirs${nonce}`);
      takeSecret();
      expect(location.hash).toBe('');
      expect(sessionHeaders()).toEqual({ 'X-Page-Secret': 'kept' });
      history.replaceState(null, '', '/#page_secret=theirs&nonce=null');
      takeSecret();
      expect(sessionHeaders()).toEqual({ 'X-Page-Secret': 'kept' });
    },
  );

  it('is left alone by any other fragment', () => {
    keepSession({ page_secret: 'kept' });
    history.replaceState(null, '', '/#main');
    takeSecret();
    expect(location.hash).toBe('#main');
    expect(sessionHeaders()).toEqual({ 'X-Page-Secret': 'kept' });
  });

  it('is forgotten with the session', () => {
    keepSession({ page_secret: 'kept', ticket: 't' });
    forgetSession();
    expect(sessionHeaders()).toEqual({});
    expect(withTicket('/x')).toBe('/x');
  });

  it('lasts as long as the page where the browser stores nothing', () => {
    const blocked = () => {
      throw new DOMException('blocked');
    };
    vi.spyOn(Storage.prototype, 'setItem').mockImplementation(blocked);
    vi.spyOn(Storage.prototype, 'getItem').mockImplementation(blocked);
    keepSession({ page_secret: 'kept' });
    expect(sessionHeaders()).toEqual({ 'X-Page-Secret': 'kept' });
  });
});

describe('a ticket', () => {
  it('is the last parameter of an address, and replaces an older one', () => {
    keepSession({ ticket: 'a.1.b' });
    expect(withTicket('/x')).toBe('/x?ticket=a.1.b');
    expect(withTicket('/x?y=1')).toBe('/x?y=1&ticket=a.1.b');
    keepSession({ ticket: 'a.2.c' });
    expect(withTicket('/x?y=1&ticket=a.1.b')).toBe('/x?y=1&ticket=a.2.c');
  });

  it('is renewed long before its hour ends', () => {
    vi.useFakeTimers();
    keepSession({ ticket: 'a.1.b' });
    expect(isTicketOld()).toBe(false);
    vi.advanceTimersByTime(40 * 60_000);
    expect(isTicketOld()).toBe(true);
  });
});
