import { createFileRoute, redirect } from '@tanstack/react-router';
import { compareSearch } from '@/components/run/search';

/** The former address of what is compared. */
export const Route = createFileRoute('/_shell/compare')({
  validateSearch: compareSearch,
  beforeLoad: ({ search: { list = 'beside', ...search } }) =>
    redirect({ to: '/', search: { ...search, list }, replace: true, throw: true }),
});
