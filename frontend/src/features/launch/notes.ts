/** Notes on fields of the launch form, which depend on the environment and on the hosts. */
import type { Environment } from '@/api/catalogue';
import type { Host } from '@/api/hosts';
import type { Draft } from './draft';

export type FieldNote = {
  text: string;
  /** The choice that cannot be selected. */
  unavailable?: string;
};

export const CROP = 'environment_config.crop';
export const PRECISION = 'config.precision';

/** The notes by the field's path. */
export function notesOf(
  draft: Draft,
  environment: Environment | undefined,
  hosts: readonly Host[],
): ReadonlyMap<string, FieldNote> {
  const notes = new Map<string, FieldNote>();
  const crop = cropNote(draft, environment);
  const precision = precisionNote(draft, hosts);
  if (crop) notes.set(CROP, crop);
  if (precision) notes.set(PRECISION, precision);
  return notes;
}

function cropNote(draft: Draft, environment: Environment | undefined): FieldNote | undefined {
  if (draft.raw[CROP] !== true || environment?.crop_hides == null) return undefined;
  const share = Math.round(100 * environment.crop_hides);
  return {
    text: `In ${environment.title} the crop hides ${share} % of the pixels that move, measured over 250 random agent steps.`,
  };
}

/** Whether a host has a GPU, or a processor that computes in bf16. */
const hasBf16 = ({ devices }: Host): boolean =>
  devices.some((device) => device.startsWith('cuda') || device.includes('bf16'));

function precisionNote(draft: Draft, hosts: readonly Host[]): FieldNote | undefined {
  const possible = hosts.filter(
    ({ id, alive, queues }) => alive && queues.includes(draft.queue) && (!draft.host || draft.host === id),
  );
  const having = possible.filter(hasBf16);
  if (having.length === possible.length) return undefined;
  if (having.length > 0) {
    return {
      text: `bf16 is slow on ${possible.length - having.length} of ${possible.length} hosts, whose processors lack it; choose one of: ${having.map(({ id }) => id).join(', ')}.`,
    };
  }
  const where = draft.host ? `Host ${draft.host} has` : 'The hosts of this queue have';
  return {
    text: `${where} no GPU and no processor with bf16 (avx512_bf16 or amx_bf16), where it is slower than fp32.`,
    unavailable: 'bf16',
  };
}
