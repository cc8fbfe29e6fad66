import type { ReactNode } from 'react';

type Props = {
  /** The accessible name. */
  label: string;
  className?: string | undefined;
  children: ReactNode;
};

/** A panel that scrolls a wide table horizontally, by keyboard as well. */
export function ScrollPanel({ label, className = '', children }: Props) {
  return (
    <div role="region" aria-label={label} tabIndex={0} className={`panel scroll-x ${className}`}>
      {children}
    </div>
  );
}
