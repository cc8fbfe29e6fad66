import { formatAgo, formatExact } from '@/lib/format';
import { useNow } from '@/lib/now';

/** A relative time that keeps up, with the exact one on hover. */
export function Time({ at }: { at: string | null | undefined }) {
  const now = useNow();
  if (!at) return <span className="muted">–</span>;
  return (
    <time dateTime={at} title={formatExact(at)} className="nowrap">
      {formatAgo(at, now)}
    </time>
  );
}
