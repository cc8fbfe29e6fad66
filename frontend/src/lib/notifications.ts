/** Notifications of the operating system about alerts, which a user may turn on in each browser. */

import { useSyncExternalStore } from 'react';

const KEY = 'callboard-alert-notifications';
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Browsers have none without a secure context. */
const areSupported = (): boolean => 'Notification' in window;

/** `blocked`: the browser refuses them until the user allows them in its settings. */
export type Notifications = 'unsupported' | 'blocked' | 'off' | 'on';

export function current(): Notifications {
  if (!areSupported()) return 'unsupported';
  if (Notification.permission === 'denied') return 'blocked';
  return Notification.permission === 'granted' && localStorage.getItem(KEY) === 'on' ? 'on' : 'off';
}

/** Whether this browser shows notifications. */
export const useNotifications = (): Notifications => useSyncExternalStore(subscribe, current);

/** Turns notifications on, if the user allows them, or off. */
export async function turn(to: 'on' | 'off'): Promise<void> {
  localStorage.setItem(KEY, to);
  if (to === 'on') await Notification.requestPermission();
  for (const listener of listeners) listener();
}

/** Shows a notification once, however many tabs are open. */
export function notify(id: string, title: string, body: string, onClick: () => void): void {
  const shown = new Notification(title, { body, tag: `callboard-${id}` });
  shown.onclick = () => {
    window.focus();
    onClick();
    shown.close();
  };
}
