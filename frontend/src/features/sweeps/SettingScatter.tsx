import { NativeSelect, Switch, useComputedColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type SweepDetail, sweepScatterQuery } from '@/api/sweeps';
import curves from '@/components/chart/curves.module.css';
import { ExportButton } from '@/components/chart/export/ExportFigure';
import { sourceAt } from '@/components/chart/export/source';
import { Scatter } from '@/components/chart/Scatter';
import { settingNames } from '@/components/config/settingTitles';
import { Empty, Problem } from '@/components/feedback';
import { plural } from '@/lib/format';
import { variedSettings } from './configurations';
import classes from './sweeps.module.css';

type Props = {
  sweep: SweepDetail;
  /** The titles of the settings by path. */
  titles: ReadonlyMap<string, string>;
  /** The setting in the URL, if any. */
  setting: string | undefined;
  onSetting: (setting: string) => void;
  /** Whether the axis is logarithmic; undefined: as suits the values. */
  log: boolean | undefined;
  onLog: (log: boolean) => void;
};

/** The score of each finished seed against a setting, with each configuration's interquartile mean. */
export function SettingScatter({ sweep, titles, setting, onSetting, log, onLog }: Props) {
  const theme = useComputedColorScheme('light');
  const [failed, setFailed] = useState<unknown>(null);
  const paths = variedSettings(sweep);
  const names = settingNames(paths, titles);
  const path = setting !== undefined && paths.includes(setting) ? setting : paths[0];
  const scored = sweep.configurations.filter(({ n }) => n > 0);
  const { data, error, refetch } = useQuery({
    ...sweepScatterQuery(sweep, { setting: path ?? '', log, theme }),
    enabled: path !== undefined && scored.length > 0,
  });
  if (path === undefined) return null;
  const canBeLog = scored.every(({ settings }) => Number(settings[path]) > 0 && settings[path] !== true);
  const n_scores = scored.reduce((sum, { n }) => sum + n, 0);
  const problem = error ?? failed;
  const retry = () => {
    setFailed(null);
    void refetch();
  };
  return (
    <section className={classes.section} aria-label="Score by hyperparameter">
      <header className={curves.head}>
        <h2 className="section-title">Score by hyperparameter</h2>
        <span className="grow" />
        <NativeSelect
          aria-label="Hyperparameter"
          value={path}
          data={paths.map((other) => ({ value: other, label: names.get(other) ?? other }))}
          onChange={({ currentTarget }) => onSetting(currentTarget.value)}
        />
        {scored.length > 0 && canBeLog && (
          <Switch
            size="xs"
            label="Log scale"
            checked={data?.layout.xaxis?.type === 'log'}
            onChange={({ currentTarget }) => onLog(currentTarget.checked)}
          />
        )}
        {scored.length > 0 && (
          <ExportButton
            source={sourceAt(
              { name: 'score-by-setting', title: 'Score by hyperparameter' },
              `/api/v1/sweeps/${sweep.id}/scatter`,
              { setting: path, ...(log !== undefined && { log }) },
            )}
          />
        )}
      </header>
      {problem ? (
        <Problem error={problem} onRetry={retry} />
      ) : (
        <div className={`panel ${classes.plot}`}>
          {scored.length === 0 ? (
            <Empty>No run of this sweep has finished yet: its score will be drawn here.</Empty>
          ) : (
            <Scatter
              label={`Score against ${names.get(path) ?? path}: ${plural(n_scores, 'finished run')} of ${plural(scored.length, 'configuration')}`}
              figure={data}
              onFailed={setFailed}
            />
          )}
        </div>
      )}
    </section>
  );
}
