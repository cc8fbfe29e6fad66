type Host = {
  id: string;
  queues: readonly string[];
  alive: boolean;
  draining: boolean;
  slots: number;
  runs: readonly unknown[];
};

/** Why nothing takes the runs of a queue, in words that follow its name. */
export function whyWaiting(hosts: readonly Host[], queue: string, wanted: string | null = null): string {
  const allowed = wanted === null ? hosts : hosts.filter(({ id }) => id === wanted);
  const who = wanted ?? 'every host that serves it';
  if (wanted !== null && allowed.length === 0) return `: the host ${wanted} it asks for is not known.`;
  const serving = allowed.filter((host) => host.queues.includes(queue));
  if (serving.length === 0)
    return wanted === null ? ': no host serves it.' : `: ${wanted} does not serve it.`;
  const alive = serving.filter((host) => host.alive);
  if (alive.length === 0)
    return wanted === null ? ': no host that serves it answers.' : `: ${wanted} does not answer.`;
  const open = alive.filter((host) => !host.draining);
  if (open.length === 0) return `: ${who} is draining.`;
  if (open.every((host) => host.runs.length >= host.slots)) return ': every slot is taken.';
  return ': a host is about to take it.';
}
