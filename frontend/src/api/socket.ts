import { renewTicket } from './client';
import { distrustTicket, withTicket } from './session';

const REFUSED = 1008;

/**
 * Opens a socket at a path of the API, as `served` gives it. The service may have refused one that closes before it has opened for its ticket, which
 * a change of the password ends, and no browser says why: the next one gets another ticket.
 */
export async function openSocket(path: string): Promise<WebSocket> {
  await renewTicket().catch(() => undefined); // without it the service refuses, and the caller tries again
  const socket = new WebSocket(withTicket(`${location.origin.replace(/^http/, 'ws')}${path}`));
  let wasOpen = false;
  socket.addEventListener('open', () => {
    wasOpen = true;
  });
  socket.addEventListener('close', ({ code }) => {
    if (!wasOpen || code === REFUSED) distrustTicket();
  });
  return socket;
}
