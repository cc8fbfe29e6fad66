import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { papersQuery, type Paper, type PaperItem } from '@/api/studies';
import { Loading, Problem } from '@/components/feedback';
import { Terms } from '@/components/Term';
import { CustomStudies } from '@/features/papers/CustomStudies';
import { PaperCard } from '@/features/papers/PaperCard';
import classes from '@/features/papers/papers.module.css';
import { ReproduceDialog } from '@/features/papers/ReproduceDialog';
import { IconBook2 } from '@tabler/icons-react';

export const Route = createFileRoute('/_shell/papers')({
  staticData: {
    nav: { label: 'Papers', icon: IconBook2, order: 40, underMore: true, covers: ['/studies/'] },
  },
  component: PapersPage,
});

type Chosen = { paper: Paper; item: PaperItem };

function PapersPage() {
  useDocumentTitle('Papers · Callboard');
  const navigate = useNavigate();
  const { data: papers, error, refetch } = useQuery(papersQuery);
  const [chosen, setChosen] = useState<Chosen | null>(null);
  return (
    <div className="page" style={{ display: 'grid', gap: 24 }}>
      <header>
        <h1 className="page-title">Papers</h1>
        <p className="muted" style={{ margin: 0, maxWidth: '72ch' }}>
          The experiments of the papers that Callboard implements. Reproduce starts their runs, and draws the
          figure or table while they train.
        </p>
      </header>
      <Terms ids={['study', 'scale', 'arm', 'start_set']} />
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!papers && !error && <Loading label="Loading the papers" lines={12} />}
      {papers?.map((paper) => (
        <section key={paper.id} className={classes.paper} aria-label={paper.title}>
          <header>
            <h2 className="section-title">{paper.title}</h2>
            <span className="muted">
              {paper.authors}, {paper.year}
            </span>
          </header>
          <div className={classes.cards}>
            {paper.items.map((item) => (
              <PaperCard
                key={item.id}
                paper={paper}
                item={item}
                onReproduce={(wanted) => setChosen({ paper, item: wanted })}
              />
            ))}
          </div>
        </section>
      ))}
      {papers && <CustomStudies />}
      {chosen && (
        <ReproduceDialog
          paper={chosen.paper.short}
          item={chosen.item}
          onClose={() => setChosen(null)}
          onStarted={(studyId) => void navigate({ to: '/studies/$studyId', params: { studyId } })}
        />
      )}
    </div>
  );
}
