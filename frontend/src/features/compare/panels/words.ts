import { settingNames } from '@/components/config/settingTitles';
import type { Panel } from '@/components/run/panels';

export const scoreName = ({ score }: Panel): string => (score === 'best_return' ? 'Best return' : 'Score');

/** What pages call a setting. */
export const settingName = (path: string, titles: ReadonlyMap<string, string>): string =>
  settingNames([path], titles).get(path) ?? path;
