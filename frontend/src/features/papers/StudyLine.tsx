import { Link } from '@tanstack/react-router';
import type { Study } from '@/api/studies';
import { StateBadge } from '@/components/run/StateBadge';
import { RelativeTime } from '@/components/text';
import classes from './papers.module.css';
import { progressText, shownState } from './studyState';

/** A study in a list: its state, its page, and how far it is. */
export function StudyLine({ study }: { study: Study }) {
  return (
    <li className={classes.study}>
      <StateBadge {...shownState(study)} />
      <Link to="/studies/$studyId" params={{ studyId: study.id }}>
        {study.scale !== null && study.name.endsWith(`, ${study.scale}`) ? study.scale : study.name}
      </Link>
      <span className="muted nowrap">
        {progressText(study)}, <RelativeTime at={study.created_at} />
      </span>
    </li>
  );
}
