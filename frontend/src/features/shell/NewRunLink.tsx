import { IconPlus } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useDenied } from '@/components/permission';
import classes from './shell.module.css';

/** The first entry of the navigation; for a role that may not start runs without a target, with the reason. */
export function NewRunLink() {
  const denied = useDenied();
  const content = (
    <>
      <IconPlus size={20} stroke={1.75} aria-hidden="true" />
      New run
    </>
  );
  if (denied === undefined)
    return (
      <Link to="/new" className={classes.navItem} data-primary>
        {content}
      </Link>
    );
  return (
    <span role="link" tabIndex={0} className={classes.navItem} title={denied} aria-disabled data-denied>
      {content}
    </span>
  );
}
