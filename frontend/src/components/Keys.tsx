import { Kbd } from '@mantine/core';

/** Keys as they are printed on a keyboard. */
export const Keys = ({ keys }: { keys: readonly string[] }) =>
  keys.map((key) => (
    <Kbd key={key} size="xs">
      {key}
    </Kbd>
  ));
