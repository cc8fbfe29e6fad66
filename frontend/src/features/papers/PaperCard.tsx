import { Button } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { studiesOfQuery, type Paper, type PaperItem } from '@/api/studies';
import { ShowMore } from '@/components/controls';
import { Problem } from '@/components/feedback';
import { served } from '@/lib/base';
import { plural } from '@/lib/format';
import classes from './papers.module.css';
import { ShapeIcon } from './ShapeIcon';
import { StudyLine } from './StudyLine';

type Props = { paper: Paper; item: PaperItem; onReproduce: (item: PaperItem) => void };

/** The name of the page at a path of one word. */
const titleOf = (path: string): string => path.charAt(1).toUpperCase() + path.slice(2);

/** Studies of an item that a card shows first. */
const N_SHOWN = 3;

/** The studies made of an item, or of others that share its runs: the latest, or all. */
function Studies({ item }: { item: PaperItem }) {
  const [all, setAll] = useState(false);
  const query = useInfiniteQuery({ ...studiesOfQuery(item.studies[0]?.definition ?? ''), enabled: all });
  const listed = query.data?.pages.flatMap(({ items }) => items) ?? item.studies.slice(0, N_SHOWN);
  return (
    <>
      <ul aria-label="Studies">
        {listed.map((study) => (
          <StudyLine key={study.id} study={study} />
        ))}
      </ul>
      {query.error && <Problem error={query.error} onRetry={() => void query.refetch()} />}
      {all ? (
        <ShowMore query={query} />
      ) : (
        item.studies.length > N_SHOWN && (
          <Button
            variant="subtle"
            aria-label={`Show all studies of ${item.label}: ${item.title}`}
            onClick={() => setAll(true)}
          >
            Show all
          </Button>
        )
      )}
    </>
  );
}

/** A figure or table of a paper: what it claims, a button that repeats it, and the studies made of it. */
export function PaperCard({ paper, item, onReproduce }: Props) {
  const title = `${paper.short}, ${item.label}: ${item.title}`;
  const [first] = item.scales;
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
      <p>
        {item.claim}{' '}
        <a
          href={served(`/help/project/evidence.html#${item.id}`)}
          aria-label={`Evidence for ${item.label} of ${paper.short}`}
        >
          Evidence
        </a>
      </p>
      {item.needs && item.scales.length > 0 && <p className="muted">{item.needs}.</p>}
      {item.studies.length > 0 && <Studies item={item} />}
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
              {first && `${plural(first.n_runs, 'run')} at the scale ${first.scale}`}
            </span>
          </>
        ) : item.page ? (
          <a href={served(item.page)}>Shown on the page {titleOf(item.page)}: no run needed</a>
        ) : (
          <span className="muted">{item.needs}</span>
        )}
      </div>
    </section>
  );
}
