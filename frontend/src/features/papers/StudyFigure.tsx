import { Skeleton, useComputedColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { fetchStudyFigure, studyFigureQuery, type StudyDetail } from '@/api/studies';
import { ExportButton } from '@/components/chart/export/ExportFigure';
import { type ExportSource, sourceAt } from '@/components/chart/export/source';
import { ServedFigure, useFittingWidth } from '@/components/chart/ServedFigure';
import { ExportTable } from '@/components/ExportTable';
import { Empty, Problem } from '@/components/feedback';
import { served } from '@/lib/base';
import classes from './papers.module.css';
import { PublishedTable } from './PublishedTable';
import { nothingText, partsOf } from './studyState';
import { StudyTableView } from './StudyTableView';

type Item = StudyDetail['items'][number];
type Props = {
  study: StudyDetail;
  figure: string;
  title: string;
  /** The paper's figure or table that it repeats, if any. */
  item: Item | undefined;
};

/** The files of a study's table. */
const tableFiles = (study: string, figure: string) =>
  Object.entries({ latex: 'LaTeX, for booktabs', csv: 'CSV', caption: 'Caption' }).map(([format, label]) => ({
    label,
    path: served(`/api/v1/studies/${study}/figures/${figure}?format=${format}`),
  }));

const HEIGHT = 360;
/** Heights: of the sentence in place of a figure without runs, of a table's head, and of a table's row. */
const [NOTHING, HEAD, ROW] = [210, 100, 28];

/** About the height of what will stand here, so that little moves when it is loaded. */
function expectedHeight({ runs, spec }: StudyDetail, figure: string): number {
  if (partsOf(runs).finished === 0) return NOTHING;
  const isTable = spec.figures.find(({ id }) => id === figure)?.kind === 'table';
  return isTable ? HEAD + ROW * spec.environments.length : HEIGHT;
}

/** A figure or table of a study with its caption; below, what the paper's shows, and what ours shows so far. */
export function StudyFigure({ study, figure, title, item }: Props) {
  const theme = useComputedColorScheme('light');
  const [box, width] = useFittingWidth();
  const [failed, setFailed] = useState<unknown>(null);
  const { data, error, refetch } = useQuery({
    ...studyFigureQuery(study, figure, { theme, width: width ?? HEIGHT }),
    enabled: width !== undefined,
  });
  const problem = error ?? failed;
  // Curves are of runs that train, too; their scores count when they have finished.
  const isDrawn = data?.kind === 'curves' && (data.figure?.data.length ?? 0) > 0;
  const nothing = data?.n_in === 0 && !isDrawn;
  return (
    <section aria-label={title} style={{ display: 'grid', gap: 8, gridTemplateColumns: 'minmax(0, 1fr)' }}>
      <header className={classes.figureHeader}>
        <h2 className="section-title">{item ? `${item.label}: ${item.title}` : title}</h2>
        {data?.figure && !nothing && <ExportButton source={exportSource(study, figure, title)} />}
        {data?.table && !nothing && <ExportTable files={tableFiles(study.id, figure)} />}
      </header>
      <div className={`panel ${classes.figure}`} ref={box}>
        {problem ? (
          <Problem
            error={problem}
            onRetry={() => {
              setFailed(null);
              void refetch();
            }}
          />
        ) : (
          <>
            {!data && <Skeleton height={expectedHeight(study, figure)} radius={2} />}
            {nothing && <Empty>{nothingText(study, data.table ? 'table' : 'figure')}</Empty>}
            {data?.table && <StudyTableView table={data.table} label={`Table: ${title}`} />}
            {data?.figure && !nothing && (
              <ServedFigure figure={data.figure} label={`${title}: ${data.caption}`} onFailed={setFailed} />
            )}
            {data && <p className={classes.caption}>{sentence(data.caption)}</p>}
          </>
        )}
      </div>
      <div className={`panel ${classes.beside}`}>
        {item && (
          <div>
            <h3>What the paper’s shows</h3>
            <p>{item.paper_shows}</p>
            {item.published && <PublishedTable table={item.published} label={`Published: ${item.label}`} />}
          </div>
        )}
        <div>
          <h3>{study.state === 'running' ? 'What ours shows so far' : 'What ours shows'}</h3>
          <p>{data?.finding || <span className="muted">Nothing yet.</span>}</p>
        </div>
      </div>
    </section>
  );
}

/** The figure for a paper: with its panels side by side as far as its width allows. */
function exportSource(study: StudyDetail, figure: string, title: string): ExportSource {
  return {
    ...sourceAt({ name: figure, title }, `/api/v1/studies/${study.id}/figures/${figure}`, {}),
    depends_on_width: true,
    figure: async (signal, width) => {
      const { figure: drawn } = await fetchStudyFigure(study.id, figure, { theme: 'light', width }, signal);
      if (!drawn) throw new Error('A table has no drawing.');
      return drawn;
    },
  };
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
