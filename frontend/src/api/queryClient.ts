import { QueryClient } from '@tanstack/react-query';
import { ApiProblem } from './problem';

/** The event stream says what is out of date, so nothing is fetched again merely because time passes. */
export const makeQueryClient = (): QueryClient =>
  new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 30_000,
        refetchOnWindowFocus: false,
        // What the service refused it will refuse again.
        retry: (failures, error) => !(error instanceof ApiProblem && error.status >= 400) && failures < 2,
      },
    },
  });
