/** The agent step whose parameters played, before each picture: u64, little-endian. */
const HEADER_BYTES = 8;

export type Picture = { agentSteps: number; jpeg: Blob };

/** Reads one message of `/runs/{id}/live`; none where it is too short to be one. */
export function readPicture(message: ArrayBuffer): Picture | null {
  if (message.byteLength <= HEADER_BYTES) return null;
  const agentSteps = Number(new DataView(message).getBigUint64(0, true));
  return { agentSteps, jpeg: new Blob([message.slice(HEADER_BYTES)], { type: 'image/jpeg' }) };
}
