import type { Style } from './colours';

/** How a line is drawn. */
export function Swatch({ colour, dash }: Partial<Style>) {
  return (
    <svg width="16" height="4" style={{ flex: 'none' }} aria-hidden="true">
      <path d="M0 2H16" stroke={colour} strokeWidth="3" strokeDasharray={dash} />
    </svg>
  );
}
