import { Skeleton, useComputedColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { fetchProfile, profileQuery, type ScoresRequest } from '@/api/scores';
import { ExportButton } from '@/components/chart/export/ExportFigure';
import { type ExportSource, sourceAt } from '@/components/chart/export/source';
import { ServedFigure, useFittingWidth } from '@/components/chart/ServedFigure';
import { Empty, Problem } from '@/components/feedback';
import { formatScore } from '@/lib/format';

const FIRST_WIDTH = 760;
const HEIGHT = 370;
const TITLE = 'Performance profile';

/** The share of each algorithm's runs above every human-normalised score, and its optimality gap. */
export function ScoreProfile({ request }: { request: ScoresRequest }) {
  const theme = useComputedColorScheme('light');
  const [box, width] = useFittingWidth();
  const [failed, setFailed] = useState<unknown>(null);
  const { data, error, refetch } = useQuery({
    ...profileQuery(request, { theme, width: width ?? FIRST_WIDTH }),
    enabled: width !== undefined,
  });
  const problem = error ?? failed;
  const gaps = Object.entries(data?.optimality_gaps ?? {});
  return (
    <section aria-label={TITLE} style={{ display: 'grid', gap: 8, gridTemplateColumns: 'minmax(0, 1fr)' }}>
      <header className="row">
        <h2 className="section-title">{TITLE}</h2>
        <span className="grow" />
        {gaps.length > 0 && !problem && <ExportButton source={exportSource(request)} />}
      </header>
      <div className="panel" style={{ padding: 12 }} ref={box}>
        {problem ? (
          <Problem
            error={problem}
            onRetry={() => {
              setFailed(null);
              void refetch();
            }}
          />
        ) : (
          !data && <Skeleton height={HEIGHT} radius={2} />
        )}
        {data && gaps.length === 0 && (
          <Empty>No environment has a human-normalised score of every shown algorithm with scores.</Empty>
        )}
        {data && gaps.length > 0 && !problem && (
          <>
            <ServedFigure figure={data.figure} label={`${TITLE}: ${data.caption}`} onFailed={setFailed} />
            <p className="muted" style={{ margin: '8px 0 0' }}>
              {data.caption}. Optimality gap:{' '}
              {gaps.map(([name, gap]) => `${name} ${formatScore(gap)}\u00a0%`).join(', ')}; how far the scores
              stay below a person’s on average.
            </p>
          </>
        )}
      </div>
    </section>
  );
}

/** The figure for a paper. */
const exportSource = (request: ScoresRequest): ExportSource => ({
  ...sourceAt({ name: 'profile', title: TITLE }, '/api/v1/scores/figures/profile', request),
  depends_on_width: true,
  figure: async (signal, width) => (await fetchProfile(request, { theme: 'light', width }, signal)).figure,
});
