import { Button } from '@mantine/core';
import { Empty } from '@/components/feedback';
import { plural } from '@/lib/format';

type Props = {
  /** The number of archived runs. */
  archived: number;
  onArchived: () => void;
};

/** The list while all runs are archived. */
export function EmptyRuns({ archived, onArchived }: Props) {
  return (
    <div className="panel">
      <Empty
        action={
          <Button variant="default" onClick={onArchived}>
            Show {plural(archived, 'archived run')}
          </Button>
        }
      >
        All runs are archived.
      </Empty>
    </div>
  );
}
