import { useInfiniteQuery } from '@tanstack/react-query';
import { customStudiesQuery } from '@/api/studies';
import { ShowMore } from '@/components/controls';
import { Problem } from '@/components/feedback';
import classes from './papers.module.css';
import { StudyLine } from './StudyLine';

/** The studies of one's own: saved from Compare or from a sweep, or sent over REST. */
export function CustomStudies() {
  const query = useInfiniteQuery(customStudiesQuery);
  const studies = query.data?.pages.flatMap(({ items }) => items) ?? [];
  return (
    <section className={classes.paper} aria-label="Studies of your own">
      <header>
        <h2 className="section-title">Studies of your own</h2>
        <span className="muted">
          Save as study on Compare and on a sweep&rsquo;s page makes one of the runs there.
        </span>
      </header>
      {query.error && <Problem error={query.error} onRetry={() => void query.refetch()} />}
      {studies.length > 0 && (
        <ul className={`panel ${classes.studies}`} aria-label="Studies">
          {studies.map((study) => (
            <StudyLine key={study.id} study={study} />
          ))}
        </ul>
      )}
      <ShowMore query={query} />
    </section>
  );
}
