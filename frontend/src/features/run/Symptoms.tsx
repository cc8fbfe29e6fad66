import { IconStethoscope } from '@tabler/icons-react';
import type { Symptom } from '@/api/runResources';
import type { Run } from '@/api/runs';
import { useSettingTitles } from '@/components/config/settingTitles';
import { formatCount } from '@/lib/format';
import { stepsOf } from '@/lib/run';
import classes from './run.module.css';

/** What is wrong with a run by its own metrics, since when, and what helps; loaded when something is. */
export default function Symptoms({ run, items }: { run: Run; items: readonly Symptom[] }) {
  const titles = useSettingTitles([run]);
  return items.map(({ rule, title, since_agent_steps, text, advice, settings, source }) => (
    <p key={rule} className={classes.notice} data-kind="lost">
      <IconStethoscope size={16} aria-hidden="true" />
      <span>
        <strong>{title}</strong> since{' '}
        <span className="nowrap">
          {stepsOf(run).slice(0, -1)} <span className="num">{formatCount(since_agent_steps)}</span>
        </span>
        . {text} {advice}{' '}
        {settings.length > 0 &&
          `Settings: ${settings.map((name) => titles.get(`config.${name}`) ?? name).join(', ')}. `}
        <span className="muted">({source})</span>
      </span>
    </p>
  ));
}
