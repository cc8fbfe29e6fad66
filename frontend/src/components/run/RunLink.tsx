import { Link } from '@tanstack/react-router';
import type { ViewNames } from '@/api/names';
import { Name } from '@/components/text';

type Props = {
  run: { id: string; name: string };
  /** What runs are called in the view. */
  names: ViewNames;
};

/** A link to a run, by its name in the view. */
export function RunLink({ run, names }: Props) {
  return (
    <Link to="/runs/$runId" params={{ runId: run.id }} aria-label={names.label(run)} draggable={false}>
      <Name name={names.of(run)} title={run.name} />
    </Link>
  );
}
