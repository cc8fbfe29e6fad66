import { formatAgo, formatExact, formatRough } from '@/lib/format';
import { useNow } from '@/lib/now';

type Props = {
  at: string | null | undefined;
  /** Only how long, where the heading says that it is an age. */
  plain?: boolean;
};

/** A relative time that keeps up, with the exact one on hover. */
export function Time({ at, plain = false }: Props) {
  const now = useNow();
  if (!at) return <span className="muted">–</span>;
  return (
    <time dateTime={at} title={formatExact(at)} className="nowrap">
      {plain ? formatRough((now - new Date(at).getTime()) / 1000) : formatAgo(at, now)}
    </time>
  );
}
