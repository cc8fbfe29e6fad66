import { useState } from 'react';

/** The value, or while it is not settled the last one that was. */
export function useSettled<T>(value: T, settled: boolean): T {
  const [last, setLast] = useState(value);
  if (settled && last !== value) setLast(value);
  return settled ? value : last;
}
