import { Button, Menu } from '@mantine/core';
import { IconFileExport } from '@tabler/icons-react';
import { withTicket } from '@/api/session';
import { useDownload } from '@/components/download';
import { served } from '@/lib/base';

const FORMATS = [
  { id: 'latex', label: 'LaTeX, for booktabs' },
  { id: 'csv', label: 'CSV' },
  { id: 'caption', label: 'Caption' },
] as const;

/** Downloads a table of a study for a paper. */
export function ExportTable({ study, figure }: { study: string; figure: string }) {
  const { onClick, problem } = useDownload();
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <Button variant="subtle" color="gray" size="compact-xs" leftSection={<IconFileExport size={14} />}>
            Export table…
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {FORMATS.map(({ id, label }) => (
            <Menu.Item
              key={id}
              component="a"
              href={withTicket(served(`/api/v1/studies/${study}/figures/${figure}?format=${id}`))}
              download
              onClick={onClick}
            >
              {label}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {problem}
    </>
  );
}
