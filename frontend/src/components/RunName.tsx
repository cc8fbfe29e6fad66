/** Of a name that is cut short, so many characters of its end stay: what tells it from its like. */
const endOf = (name: string): number => Math.min(24, Math.max(14, Math.ceil(name.length / 2)));

/** A run's name, cut in its middle where there is no room for it. */
export function RunName({ name }: { name: string }) {
  const end = endOf(name);
  if (name.length <= end) return name;
  const begin = name.slice(0, -end);
  return (
    <span style={{ display: 'flex', whiteSpace: 'pre' }}>
      {/* Something of the beginning stays too, and with it the dots that say that it is cut. */}
      <span
        className="ellipsis"
        style={{ whiteSpace: 'pre', flexShrink: 1000, minWidth: `${Math.min(4, begin.length / 2)}em` }}
      >
        {begin}
      </span>
      {/* Where there is room for little else, the very end stays. */}
      <span style={{ display: 'flex', justifyContent: 'flex-end', overflow: 'hidden' }}>
        {name.slice(-end)}
      </span>
    </span>
  );
}
