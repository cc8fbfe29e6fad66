import { Button, Modal } from '@mantine/core';
import { IconFileExport } from '@tabler/icons-react';
import { lazy, Suspense, useState } from 'react';
import { Loading } from '@/components/feedback';
import type { ExportSource } from './source';

// Loaded when a figure is first exported.
const ExportDialog = lazy(() => import('./ExportDialog'));

type Props = { source: ExportSource; log?: boolean; onClose: () => void };

/** Exports a figure for a paper. */
export function ExportFigure({ source, log = false, onClose }: Props) {
  const waiting = (
    <Modal opened onClose={onClose} title={`Export figure: ${source.title}`}>
      <Loading label="Loading…" />
    </Modal>
  );
  return (
    <Suspense fallback={waiting}>
      <ExportDialog source={source} log={log} onClose={onClose} />
    </Suspense>
  );
}

/** A button that opens the dialog, for charts without a menu. */
export function ExportButton({ source }: { source: ExportSource }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button
        variant="subtle"
        color="gray"
        size="compact-xs"
        leftSection={<IconFileExport size={14} />}
        onClick={() => setOpen(true)}
      >
        Export figure…
      </Button>
      {isOpen && <ExportFigure source={source} onClose={() => setOpen(false)} />}
    </>
  );
}
