import { Skeleton, useComputedColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { fetchStudyFigure, studyFigureQuery, type StudyDetail } from '@/api/studies';
import type { Figure } from '@/api/tails';
import { loadPlotly } from '@/components/chart/Chart';
import { ExportButton } from '@/components/chart/export/ExportFigure';
import { type ExportSource, sourceAt } from '@/components/chart/export/source';
import { Empty, Problem } from '@/components/feedback';
import classes from './papers.module.css';
import { StudyTableView } from './StudyTableView';

type Item = StudyDetail['items'][number];
type Props = {
  study: StudyDetail;
  figure: string;
  title: string;
  /** The paper's figure or table that it repeats, if any. */
  item: Item | undefined;
};

/** Widths for which figures are laid out; in between they are stretched. */
const WIDTHS = [320, 560, 760, 960, 1280] as const;
const HEIGHT = 360;

/** A figure or table of a study, with its rule, and what the paper's shows beside what it shows so far. */
export function StudyFigure({ study, figure, title, item }: Props) {
  const theme = useComputedColorScheme('light');
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState<number>();
  const [failed, setFailed] = useState<unknown>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = (): void => {
      const fitting = WIDTHS.filter((one) => one <= element.clientWidth).at(-1) ?? WIDTHS[0];
      setWidth(fitting);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const { data, error, refetch } = useQuery({
    ...studyFigureQuery(study, figure, { theme, width: width ?? WIDTHS[0] }),
    enabled: width !== undefined,
  });
  const problem = error ?? failed;
  const nothing = data?.n_in === 0;
  return (
    <section aria-label={title} style={{ display: 'grid', gap: 8, gridTemplateColumns: 'minmax(0, 1fr)' }}>
      <header className={classes.figureHeader}>
        <h2 className="section-title">{item ? `${item.label}: ${item.title}` : title}</h2>
        {data?.figure && !nothing && <ExportButton source={exportSource(study, figure, title)} />}
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
            {!data && <Skeleton height={HEIGHT} radius={2} />}
            {nothing && (
              <Empty>
                No run has a score yet: the {data.table ? 'table' : 'figure'} fills in as runs finish.
              </Empty>
            )}
            {data?.table && <StudyTableView table={data.table} label={`Table: ${title}`} />}
            {data?.figure && !nothing && (
              <Drawing figure={data.figure} label={`${title}: ${data.caption}`} onFailed={setFailed} />
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
          </div>
        )}
        <div>
          <h3>What ours shows so far</h3>
          <p>{data?.finding || <span className="muted">Nothing yet.</span>}</p>
        </div>
      </div>
    </section>
  );
}

/** The figure for a paper: with its panels side by side as far as its width allows. */
function exportSource(study: StudyDetail, figure: string, title: string): ExportSource {
  const path = `/api/v1/studies/${study.id}/figures/${figure}`;
  return {
    ...sourceAt({ name: figure, title }, path, {}),
    depends_on_width: true,
    figure: async (signal, width) => {
      const { figure: drawn } = await fetchStudyFigure(study.id, figure, { theme: 'light', width }, signal);
      if (!drawn) throw new Error('A table has no drawing.');
      return drawn;
    },
  };
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

type DrawingProps = { figure: Figure; label: string; onFailed: (error: unknown) => void };

/** A figure of the service at the height that it was laid out for. */
function Drawing({ figure, label, onFailed }: DrawingProps) {
  const box = useRef<HTMLDivElement>(null);
  const height = figure.layout.height ?? HEIGHT;

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const { width: _, ...layout } = figure.layout as Figure['layout'] & { width?: number };
    const shown = {
      ...layout,
      paper_bgcolor: 'rgba(0,0,0,0)',
      plot_bgcolor: 'rgba(0,0,0,0)',
      autosize: true,
    };
    loadPlotly()
      .then((plotly) => plotly.react(element, figure.data, shown, { displayModeBar: false, showTips: false }))
      .catch(onFailed);
    const observer = new ResizeObserver(() => {
      // Its removal from the page is a change of size, too: the library refuses to draw it then.
      if (element.isConnected && element.classList.contains('js-plotly-plot'))
        void loadPlotly().then((plotly) => plotly.Plots.resize(element));
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [figure, onFailed]);

  useEffect(() => {
    const element = box.current;
    return () => {
      if (element?.classList.contains('js-plotly-plot'))
        void loadPlotly().then((plotly) => plotly.purge(element));
    };
  }, []);

  return <div ref={box} role="img" aria-label={label} style={{ height }} />;
}
