import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { isGone } from '@/api/problem';
import { studyQuery, type StudyDetail } from '@/api/studies';
import { TextLink } from '@/components/controls';
import { Empty, Loading, PageProblem, titleOf } from '@/components/feedback';
import { Markdown } from '@/components/Markdown';
import { Terms } from '@/components/Term';
import classes from '@/features/papers/papers.module.css';
import { StudyFigure } from '@/features/papers/StudyFigure';
import { StudyHeader } from '@/features/papers/StudyHeader';
import { StudyFacts, StudyProgress, StudyRuns } from '@/features/papers/StudyProgress';

export const Route = createFileRoute('/_shell/studies/$studyId')({ component: StudyPage });

function StudyPage() {
  const { studyId } = Route.useParams();
  const { data, error, refetch } = useQuery(studyQuery(studyId));
  const study = isGone(error) ? undefined : data;
  useDocumentTitle(`${study?.name ?? titleOf(error, 'Study')} · Callboard`);
  return (
    <div className="page" style={{ display: 'grid', gap: 16, gridTemplateColumns: 'minmax(0, 1fr)' }}>
      {!study && <h1 className="page-title">{titleOf(error, 'Study')}</h1>}
      {error && !study && <PageProblem error={error} onRetry={() => void refetch()} back="/papers" />}
      {!study && !error && <Loading label="Loading the study" lines={10} />}
      {study && <Content study={study} />}
    </div>
  );
}

function Content({ study }: { study: StudyDetail }) {
  const navigate = Route.useNavigate();
  const { figures } = study.spec;
  return (
    <>
      <TextLink to="/papers">Papers</TextLink>
      <StudyHeader study={study} onDeleted={() => void navigate({ to: '/papers' })} />
      {study.notes && <Markdown text={study.notes} />}
      {figures.length === 0 && (
        <div className="panel">
          <Empty>This study has no figures: its runs are below.</Empty>
        </div>
      )}
      {figures.map(({ id, title }) => (
        <StudyFigure
          key={id}
          study={study}
          figure={id}
          title={title}
          item={study.items.find((item) => item.figure === id)}
        />
      ))}
      <Terms ids={['arm', 'seed', 'score', 'agent_steps', 'confidence_interval']} />
      <StudyFacts study={study} />
      <StudyProgress study={study} />
      {study.differs.length > 0 && (
        <section aria-label="What differs from the paper">
          <h2 className="section-title">What differs from the paper, as it was started</h2>
          <ul className={classes.list}>
            {study.differs.map((difference) => (
              <li key={difference}>{difference}</li>
            ))}
          </ul>
        </section>
      )}
      <StudyRuns study={study} />
    </>
  );
}
