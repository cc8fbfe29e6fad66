/** Of a name that is cut short, this many characters of its end stay: what tells it from its like. */
const END = 14;

/** A run's name, cut in its middle where there is no room for it. */
export function RunName({ name }: { name: string }) {
  if (name.length <= END) return name;
  return (
    <span style={{ display: 'flex', whiteSpace: 'pre' }}>
      <span className="ellipsis" style={{ whiteSpace: 'pre' }}>
        {name.slice(0, -END)}
      </span>
      <span>{name.slice(-END)}</span>
    </span>
  );
}
