import { Button, Menu, Tooltip } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { meQuery } from '@/api/account';
import type { BulkTarget } from '@/api/runs';
import { withTicket } from '@/api/session';
import { useDownload } from '@/components/download';
import { served } from '@/lib/base';
import { formatInteger, plural } from '@/lib/format';

/** The most runs of one export, by their ids and by a filter. */
const MAX_IDS = 200;
const MAX_MATCHED = 1000;

/** Each with the extra of the server that writes it. */
const FORMATS = [
  { id: 'csv', label: 'CSV', extra: 'parquet' },
  { id: 'parquet', label: 'Parquet', extra: 'parquet' },
  { id: 'tensorboard', label: 'TensorBoard (zip)', extra: null },
] as const;

/** The address of a file with every point of these runs. */
export function exportUrl(target: BulkTarget, format: string): string {
  if ('filter' in target)
    return served(`/api/v1/runs/export?filter=${encodeURIComponent(target.filter)}&format=${format}`);
  const [first] = target.ids;
  return target.ids.length === 1 && first
    ? served(`/api/v1/runs/${first}/export?format=${format}`)
    : served(`/api/v1/runs/export?${target.ids.map((id) => `run=${id}&`).join('')}format=${format}`);
}

type ItemsProps = {
  target: BulkTarget;
  /** From `useDownload`. Its problem is shown outside the menu, which closes with a click. */
  onClick: ReturnType<typeof useDownload>['onClick'];
  /** Why nothing can be exported. */
  unavailable?: string | undefined;
};

/** The items of a menu that download every point of the runs at full resolution, in one file. */
export function ExportItems({ target, onClick, unavailable }: ItemsProps) {
  const n = 'filter' in target ? target.expected : target.ids.length;
  // Every page has fetched it.
  const { data: me } = useQuery({ ...meQuery, enabled: false });
  const whyNot = (extra: string | null): string | undefined =>
    unavailable ??
    (extra !== null && me?.missing_extras.includes(extra)
      ? `The server lacks callboard[${extra}]: pip install 'callboard[${extra}]'`
      : undefined);
  const lacking =
    unavailable === undefined ? FORMATS.map(({ extra }) => whyNot(extra)).find(Boolean) : undefined;
  return (
    <>
      <Menu.Label>{n === 1 ? 'Export all points' : `All points of ${plural(n, 'run')}`}</Menu.Label>
      {lacking && <Menu.Label maw={260}>{lacking}</Menu.Label>}
      {FORMATS.map(({ id, label, extra }) =>
        whyNot(extra) === undefined ? (
          <Menu.Item
            key={id}
            component="a"
            href={withTicket(exportUrl(target, id))}
            download
            onClick={onClick}
          >
            {label}
          </Menu.Item>
        ) : (
          <Menu.Item key={id} disabled title={whyNot(extra)}>
            {label}
          </Menu.Item>
        ),
      )}
    </>
  );
}

/** Downloads every point of the runs at full resolution, in one file. */
export function ExportMenu({ target }: { target: BulkTarget }) {
  const [n, max] = 'filter' in target ? [target.expected, MAX_MATCHED] : [target.ids.length, MAX_IDS];
  const tooMany = n > max;
  const { onClick, problem } = useDownload();
  return (
    <Menu position="bottom-end" withinPortal>
      <Tooltip
        label={`At most ${formatInteger(max)} runs fit into one file: select fewer.`}
        disabled={!tooMany}
        events={{ hover: true, focus: true, touch: true }}
      >
        <span>
          <Menu.Target>
            <Button variant="default" disabled={n === 0 || tooMany}>
              Export
            </Button>
          </Menu.Target>
        </span>
      </Tooltip>
      <Menu.Dropdown>
        <ExportItems target={target} onClick={onClick} />
      </Menu.Dropdown>
      {problem}
    </Menu>
  );
}
