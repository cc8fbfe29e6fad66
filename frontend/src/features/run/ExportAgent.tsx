import { Button, Menu } from '@mantine/core';
import type { Checkpoint } from '@/api/runResources';
import { withTicket } from '@/api/session';
import { useDownload } from '@/components/download';
import { served } from '@/lib/base';

const FORMATS = [
  ['safetensors', 'safetensors, for Callboard and PyTorch'],
  ['onnx', 'ONNX, for programs without Callboard'],
] as const;

/** Downloads a checkpoint's agent with its model card, once a worker has written it. */
export function ExportAgent({ run, checkpoint }: { run: string; checkpoint: Checkpoint }) {
  const { onClick, isPending, problem } = useDownload();
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <Button
            size="compact-xs"
            variant="default"
            loading={isPending}
            aria-label={`Export the agent of ${checkpoint.file}`}
          >
            Export agent
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {FORMATS.map(([format, label]) => (
            <Menu.Item
              key={format}
              component="a"
              href={withTicket(
                served(`/api/v1/runs/${run}/agent?checkpoint=${checkpoint.id}&format=${format}&again=true`),
              )}
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
