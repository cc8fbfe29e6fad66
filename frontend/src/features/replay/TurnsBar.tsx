import classes from './turns.module.css';
import { actorName, colourOf, spansOf, type Played } from './turns';

type Props = { played: Played; step: number };

/** Who made the decisions of a joint game, over its whole length, and who makes the one that is shown. */
export function TurnsBar({ played, step }: Props) {
  const spans = spansOf(played.turns);
  const steps = spans.at(-1)?.end ?? 0;
  const acting = spans.find(({ start, end }) => step >= start && step < end)?.actor;
  const shown = [...new Set(spans.map(({ actor }) => actor))].sort((a, b) => a - b);
  return (
    <div className={classes.turns}>
      <ul className={classes.legend} aria-label="Who acted">
        {shown.map((actor) => (
          <li key={actor} data-acting={actor === acting || undefined}>
            <i style={{ background: colourOf(actor) }} /> {actorName(played.actors[actor])}
            {actor === acting && <span className="visually-hidden"> (acts at this step)</span>}
          </li>
        ))}
      </ul>
      <div className={classes.bar} aria-hidden="true">
        {spans.map(({ actor, start, end }) => (
          <span
            key={start}
            style={{ width: `${(100 * (end - start)) / steps}%`, background: colourOf(actor) }}
            title={`${actorName(played.actors[actor])}: agent steps ${start + 1} to ${end}`}
          />
        ))}
      </div>
    </div>
  );
}
