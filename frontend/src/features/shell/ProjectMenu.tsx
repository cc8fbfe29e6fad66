import { Menu } from '@mantine/core';
import { IconFolder } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useLocation, useNavigate, useSearch } from '@tanstack/react-router';
import { projectsQuery } from '@/api/runs';
import { formatInteger } from '@/lib/format';
import { useProject } from '@/lib/project';
import { defined } from '@/lib/search';
import classes from './shell.module.css';

const ALL = 'All projects';

/** The projects to choose from, and the chosen one; undefined as long as all runs are of the default project. */
function useProjects() {
  const { data = [] } = useQuery(projectsQuery);
  const [chosen, choose] = useProject();
  const path = useLocation({ select: ({ pathname }) => pathname });
  const { project } = useSearch({ strict: false });
  const navigate = useNavigate();
  const isView = path.startsWith('/w/');
  const current = isView ? (project ?? '') : path === '/' ? (project ?? chosen) : chosen;
  if (data.length < 2 && current === '') return undefined;
  const names = data.map(({ name }) => name);
  return {
    current,
    projects: names.includes(current) || current === '' ? data : [...data, { name: current, n_runs: 0 }],
    choose: (next: string): void => {
      choose(next);
      const search = (before: object) =>
        defined({ ...(path === '/' ? before : {}), project: next || undefined, selected: undefined });
      void navigate({ to: '/', search });
    },
  };
}

/** The menu of projects in the navigation. */
export function ProjectMenu() {
  const known = useProjects();
  if (!known) return null;
  const label = known.current || ALL;
  return (
    <Menu position="right-start" withinPortal>
      <Menu.Target>
        <button
          type="button"
          className={`${classes.navItem} ${classes.project}`}
          aria-label={`Project: ${label}`}
          title={label}
        >
          <IconFolder size={20} stroke={1.75} aria-hidden="true" />
          <span className={classes.projectName}>{label}</span>
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        <ProjectItems />
      </Menu.Dropdown>
    </Menu>
  );
}

/** The items of a menu that choose the project whose runs are listed. */
export function ProjectItems() {
  const known = useProjects();
  if (!known) return null;
  const { current, projects, choose } = known;
  return (
    <>
      <Menu.Label>Runs of</Menu.Label>
      <Menu.Item
        aria-current={current === '' || undefined}
        fw={current === '' ? 600 : 400}
        onClick={() => choose('')}
      >
        {ALL}
      </Menu.Item>
      {projects.map(({ name, n_runs }) => (
        <Menu.Item
          key={name}
          aria-current={current === name || undefined}
          fw={current === name ? 600 : 400}
          rightSection={<span className="muted num">{formatInteger(n_runs)}</span>}
          onClick={() => choose(name)}
        >
          <span className={classes.projectItem}>{name}</span>
        </Menu.Item>
      ))}
    </>
  );
}
