import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type Alert = components['schemas']['AlertOut'];
export type Rule = components['schemas']['RuleOut'];
type RuleFields = components['schemas']['RuleRequest'];
/** Fields that are left out have the service's defaults. */
export type RuleRequest = Pick<RuleFields, 'kinds'> & Partial<RuleFields>;
export type AlertKind = RuleRequest['kinds'][number];
export type Target = components['schemas']['TargetOut'];
type TargetRequest = components['schemas']['TargetRequest'];

/** Alerts that the bell knows: the latest unread ones. */
const LATEST = 5;

/** The latest unread alerts, and how many there are. */
export const unreadQuery = queryOptions({
  queryKey: keys.unreadAlerts(),
  queryFn: ({ signal }) =>
    unwrap(api.GET('/api/v1/alerts', { params: { query: { unread: true, limit: LATEST } }, signal })),
});

/** The user's alerts, latest first, page by page. */
export const inboxQuery = (unread: boolean) =>
  infiniteQueryOptions({
    queryKey: keys.alerts(unread),
    queryFn: ({ pageParam, signal }) =>
      unwrap(api.GET('/api/v1/alerts', { params: { query: { unread, cursor: pageParam } }, signal })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });

/** The user's rules, latest first; a user has at most 100. */
export const rulesQuery = queryOptions({
  queryKey: keys.alertRules(),
  queryFn: async ({ signal }) => (await unwrap(api.GET('/api/v1/alert-rules', { signal }))).items,
});

/** The user's rules about one run. */
export const runRulesQuery = (run: string) =>
  queryOptions({
    queryKey: keys.alertRules(run),
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET('/api/v1/alert-rules', { params: { query: { run } }, signal }))).items,
  });

/** Where alerts can be delivered, by name; there are at most 100. */
export const targetsQuery = queryOptions({
  queryKey: keys.alertTargets(),
  queryFn: async ({ signal }) => (await unwrap(api.GET('/api/v1/alert-targets', { signal }))).items,
});

const rulePath = (id: string) => ({ params: { path: { rule_id: id } } });
const targetPath = (id: string) => ({ params: { path: { target_id: id } } });
const alertPath = (id: string) => ({ params: { path: { alert_id: id } } });

export const alertActions = {
  setRead: (id: string, read: boolean) =>
    unwrap(api.PATCH('/api/v1/alerts/{alert_id}', { ...alertPath(id), body: { read } })),
  readUntil: (id: string) => unwrap(api.POST('/api/v1/alerts/{alert_id}/read-until', alertPath(id))),
  createRule: (body: RuleRequest) => unwrap(api.POST('/api/v1/alert-rules', { body: body as RuleFields })),
  replaceRule: (id: string, body: RuleRequest) =>
    unwrap(api.PUT('/api/v1/alert-rules/{rule_id}', { ...rulePath(id), body: body as RuleFields })),
  deleteRule: (id: string) => unwrap(api.DELETE('/api/v1/alert-rules/{rule_id}', rulePath(id))),
  createTarget: (body: TargetRequest) => unwrap(api.POST('/api/v1/alert-targets', { body })),
  deleteTarget: (id: string) => unwrap(api.DELETE('/api/v1/alert-targets/{target_id}', targetPath(id))),
  tryTarget: (id: string) => unwrap(api.POST('/api/v1/alert-targets/{target_id}/trial', targetPath(id))),
};

/** Runs a change of alerts, rules or targets, then refetches them all. */
export function useAlertMutation<T, R>(change: (value: T) => Promise<R>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () =>
      Promise.all(
        [keys.allAlerts(), keys.allAlertRules(), keys.alertTargets()].map((queryKey) =>
          client.invalidateQueries({ queryKey }),
        ),
      ),
  });
}
