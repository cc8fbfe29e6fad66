/** Ways of scoring an agent, as the service's figures call them. */
const WORDS: Readonly<Record<string, string>> = { noop_starts: 'no-op starts', plain: 'plain starts' };

export const protocolWords = (protocol: string): string => WORDS[protocol] ?? protocol.replaceAll('_', ' ');
