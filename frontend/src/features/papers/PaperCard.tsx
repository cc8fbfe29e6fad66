import type { Paper, PaperItem } from '@/api/studies';
import { Button } from '@mantine/core';
import { served } from '@/lib/base';
import { plural } from '@/lib/format';
import classes from './papers.module.css';
import { ShapeIcon } from './ShapeIcon';
import { StudyLine } from './StudyLine';

type Props = { paper: Paper; item: PaperItem; onReproduce: (item: PaperItem) => void };

/** A figure or table of a paper: what it claims, a button that repeats it, and the studies made of it. */
export function PaperCard({ paper, item, onReproduce }: Props) {
  const title = `${paper.short}, ${item.label}: ${item.title}`;
  return (
    <section className={`panel ${classes.card}`} aria-label={title}>
      <header>
        <ShapeIcon shape={item.shape} />
        <h3>
          <span className="muted">{item.label}</span>
          <br />
          {item.title}
        </h3>
      </header>
      <p>{item.claim}</p>
      {item.needs && item.scales.length > 0 && <p className="muted">{item.needs}.</p>}
      {item.studies.length > 0 && (
        <ul aria-label="Studies">
          {item.studies.slice(0, 3).map((study) => (
            <StudyLine key={study.id} study={study} />
          ))}
        </ul>
      )}
      <div className={classes.foot}>
        {item.scales.length > 0 ? (
          <>
            <Button
              variant="default"
              aria-label={`Reproduce ${item.label} of ${paper.short}`}
              onClick={() => onReproduce(item)}
            >
              Reproduce
            </Button>
            <span className="muted">
              from {plural(Math.min(...item.scales.map(({ n_runs }) => n_runs)), 'run')}
            </span>
          </>
        ) : item.page ? (
          <a href={served(item.page)}>Shown on its page: no run needed</a>
        ) : (
          <span className="muted">{item.needs}</span>
        )}
      </div>
    </section>
  );
}
