import { ActionIcon } from '@mantine/core';
import { IconCheck, IconCopy } from '@tabler/icons-react';
import { useRef } from 'react';
import { CopyButton } from './CopyButton';
import classes from './CopyCode.module.css';

/** Code or a command, with a button that copies it. */
export function CopyCode({ code, label }: { code: string; label: string }) {
  const shown = useRef<HTMLElement>(null);
  return (
    <div className={classes.block}>
      <pre tabIndex={0} aria-label={label}>
        <code ref={shown}>{code}</code>
      </pre>
      <CopyButton value={code} shown={shown}>
        {({ copied, copy }) => (
          <ActionIcon
            variant="default"
            size={28}
            className={classes.copy}
            aria-label={copied ? 'Copied' : `Copy ${label.toLowerCase()}`}
            onClick={copy}
          >
            {copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
          </ActionIcon>
        )}
      </CopyButton>
    </div>
  );
}
