import { Button, Menu } from '@mantine/core';
import { IconFileExport } from '@tabler/icons-react';
import { withTicket } from '@/api/session';
import { useDownload } from '@/components/download';

export type TableFile = {
  label: string;
  /** Its address. */
  path: string;
};

/** Downloads a table for a paper. */
export function ExportTable({ files }: { files: readonly TableFile[] }) {
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
          {files.map(({ label, path }) => (
            <Menu.Item key={path} component="a" href={withTicket(path)} download onClick={onClick}>
              {label}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {problem}
    </>
  );
}
