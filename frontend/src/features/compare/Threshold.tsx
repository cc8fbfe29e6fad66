import { TextInput } from '@mantine/core';
import { useEffect, useEffectEvent, useState } from 'react';
import { parseNumber } from '@/lib/format';

const DEBOUNCE_MS = 400;

/** The score for "time to threshold", applied when typing pauses. */
export function Threshold({
  value,
  onValue,
}: {
  value: number | undefined;
  onValue: (value?: number) => void;
}) {
  const [typed, setTyped] = useState(value === undefined ? '' : String(value));
  const [previous, setPrevious] = useState(value);
  // Navigating back or forward changes the URL without typing.
  if (previous !== value) {
    setPrevious(value);
    if (parseNumber(typed) !== value) setTyped(value === undefined ? '' : String(value));
  }
  const number = parseNumber(typed);
  const empty = typed.trim() === '';
  const invalid = !empty && !Number.isFinite(number);
  const apply = useEffectEvent(() => {
    if (!invalid) onValue(empty ? undefined : number);
  });
  useEffect(() => {
    const timer = setTimeout(() => apply(), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <label className="row">
      Time to threshold
      <TextInput
        w={72}
        inputMode="decimal"
        placeholder="score"
        classNames={{ input: 'num' }}
        value={typed}
        error={invalid}
        onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      />
    </label>
  );
}
