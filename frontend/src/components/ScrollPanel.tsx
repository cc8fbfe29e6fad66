import type { ReactNode } from 'react';

type Props = {
  /** What a screen reader calls it. */
  label: string;
  className?: string | undefined;
  children: ReactNode;
};

/** A panel whose wide table scrolls sideways, by the keyboard too. */
export function ScrollPanel({ label, className = '', children }: Props) {
  return (
    <div
      role="region"
      aria-label={label}
      tabIndex={0}
      className={`panel ${className}`}
      // Hidden words in it must not reach beyond it and widen the page.
      style={{ overflowX: 'auto', position: 'relative' }}
    >
      {children}
    </div>
  );
}
