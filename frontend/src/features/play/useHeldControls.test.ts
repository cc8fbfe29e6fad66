import { act, cleanup, renderHook } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { useHeldControls } from './useHeldControls';

Object.assign(navigator, { getGamepads: () => [] });

afterEach(cleanup);

function raise(error: Error): never {
  throw error;
}

/** Sends an event of a person's keyboard. */
function send(type: 'keydown' | 'keyup', options: KeyboardEventInit, target: Element = document.body): void {
  const event = new KeyboardEvent(type, { code: 'ArrowLeft', bubbles: true, ...options });
  Object.defineProperty(event, 'isTrusted', { value: true });
  act(() => void target.dispatchEvent(event));
}

it.each([
  ['does not offer gamepads', undefined],
  ['refuses them', vi.fn(() => raise(new DOMException('gamepad is not allowed', 'SecurityError')))],
])('the keys control the game in a browser that %s', (_, getGamepads) => {
  Object.assign(navigator, { getGamepads });
  const { result } = renderHook(() => useHeldControls(true));
  send('keydown', {});
  expect([...result.current.held]).toEqual(['left']);
  Object.assign(navigator, { getGamepads: () => [] });
});

it.each([
  ['with a modifier', { ctrlKey: true }, document.body],
  ['in a field', {}, document.body.appendChild(document.createElement('input'))],
])('a control is released by a key that is released %s', (_, options, target) => {
  const { result } = renderHook(() => useHeldControls(true));
  send('keydown', options, target);
  expect([...result.current.held]).toEqual([]);
  send('keydown', {});
  expect([...result.current.held]).toEqual(['left']);
  send('keyup', options, target);
  expect([...result.current.held]).toEqual([]);
});
