import type { XAxis } from '@/api/series';

export const X_AXES: readonly { id: XAxis; label: string; title: string }[] = [
  { id: 'agent_steps', label: 'Agent steps', title: 'Agent steps' },
  { id: 'frames', label: 'Frames', title: 'Emulator frames' },
  { id: 'wall_time_s', label: 'Time', title: 'Training time (s)' },
  { id: 'episodes', label: 'Episodes', title: 'Training episodes' },
];

export const DEFAULT_X: XAxis = 'agent_steps';
export const DEFAULT_SMOOTH = 0.9;
