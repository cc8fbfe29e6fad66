import { IconChartLine, IconListDetails, IconServer, IconSettings, IconWorld } from '@tabler/icons-react';

/** The pages there are, in the order of the bar. */
export const PAGES = [
  { to: '/', label: 'Runs', icon: IconListDetails },
  { to: '/compare', label: 'Compare', icon: IconChartLine },
  { to: '/worlds', label: 'Worlds', icon: IconWorld },
  { to: '/hosts', label: 'Hosts', icon: IconServer },
  { to: '/settings', label: 'Settings', icon: IconSettings },
] as const;
