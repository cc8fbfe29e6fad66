import { NativeSelect, Switch, TextInput } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { IconSearch, IconTrophy } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { environmentsQuery } from '@/api/catalogue';
import { hostsQuery } from '@/api/hosts';
import { scoresQuery, type ScoreRow } from '@/api/scores';
import { Empty, Loading, Problem } from '@/components/feedback';
import type { TermId } from '@/components/glossary';
import { Terms } from '@/components/Term';
import { ColumnPicker } from '@/features/scores/ColumnPicker';
import { ScoreProfile } from '@/features/scores/ScoreProfile';
import { ScoresTable } from '@/features/scores/ScoresTable';
import { findEnvironments } from '@/lib/environments';
import { plural, protocolLabel } from '@/lib/format';
import { joinNames, splitNames } from '@/lib/names';
import { alsoByRestNames, checked, defined, flag, nameList, protocol, text } from '@/lib/search';

const MAX_SEEDS = 100;

const validateSearch = alsoByRestNames({ column: 'columns', min_seeds: 'seeds' }, (search) =>
  checked({
    q: text(search.q),
    family: text(search.family),
    protocol: protocol(search.protocol),
    /** Ids of the shown columns. */
    columns: nameList(search.columns),
    /** How many runs a score needs at least. */
    seeds:
      Number.isInteger(search.seeds) && Number(search.seeds) >= 1 && Number(search.seeds) <= MAX_SEEDS
        ? Number(search.seeds)
        : undefined,
    normalised: flag(search.normalised),
  }),
);

export const Route = createFileRoute('/_shell/scores')({
  validateSearch,
  staticData: { nav: { label: 'Scores', icon: IconTrophy, order: 50 } },
  component: ScoresPage,
});

const SEEDS = [1, 3, 5, 10] as const;
const TERMS: readonly TermId[] = ['protocol', 'seed', 'confidence_interval', 'human_normalised', 'start_set'];
const NORMALISED_TERMS: readonly TermId[] = ['performance_profile', 'optimality_gap'];

/** Whether runs of this installation have a score in the environment; such rows come first. */
const hasOwnScore = ({ cells }: ScoreRow): boolean => cells.some((cell) => cell && cell.runs.length > 0);

type Search = ReturnType<typeof validateSearch>;

function ScoresPage() {
  useDocumentTitle('Scores · Callboard');
  const search = Route.useSearch();
  const { q = '', family, protocol, columns, seeds, normalised = false } = search;
  const navigate = Route.useNavigate();
  const chosen = columns === undefined ? undefined : splitNames(columns);
  const request = defined({ protocol, column: chosen, min_seeds: seeds });
  const { data, error, refetch } = useQuery(scoresQuery(request));
  const catalogue = useQuery(environmentsQuery);
  const { data: hosts, isPending: hostsPending } = useQuery(hostsQuery);
  const change = (to: { [K in keyof Search]?: Search[K] | undefined }, replace = false): void =>
    void navigate({ search: defined({ ...search, ...to }), replace, resetScroll: false });
  const problem = error ?? catalogue.error;
  const environments = catalogue.data;
  const families = [...new Set(environments?.map((environment) => environment.family))];
  const shown = new Set(
    findEnvironments(environments ?? [], q)
      .filter((environment) => !family || environment.family === family)
      .map(({ id }) => id),
  );
  const matching = data?.rows.filter(({ environment }) => shown.has(environment)) ?? [];
  const rows = [...matching.filter(hasOwnScore), ...matching.filter((row) => !hasOwnScore(row))];
  const sources = [...new Set(rows.map(({ references }) => references).filter(Boolean))];
  // Hosts add a line to environments that none of them can run.
  const ready = data && environments && !hostsPending;
  return (
    <div className="page" style={{ display: 'grid', gap: 12, gridTemplateColumns: 'minmax(0, 1fr)' }}>
      <h1 className="page-title">Scores</h1>
      {/* All at once, since the controls depend on the answers. */}
      {!ready && !problem && <Loading label="Loading the scores" lines={12} />}
      {(!!ready || problem) && (
        <>
          <div className="row wrap">
            <TextInput
              type="search"
              aria-label="Search environments"
              placeholder="Search environments"
              leftSection={<IconSearch size={14} aria-hidden="true" />}
              value={q}
              onChange={({ currentTarget }) => change({ q: currentTarget.value || undefined }, true)}
            />
            {families.length > 1 && (
              <NativeSelect
                aria-label="Family"
                value={family ?? ''}
                data={[{ value: '', label: 'All families' }, ...families]}
                onChange={({ currentTarget }) => change({ family: currentTarget.value || undefined })}
              />
            )}
            {data && (
              <NativeSelect
                aria-label="Protocol"
                value={data.protocol}
                data={data.protocols.map(({ id, n_runs }) => ({
                  value: id,
                  label: n_runs > 0 ? `${protocolLabel(id)} (${plural(n_runs, 'run')})` : protocolLabel(id),
                }))}
                onChange={({ currentTarget }) => change({ protocol: currentTarget.value })}
              />
            )}
            <NativeSelect
              aria-label="Seeds"
              value={String(seeds ?? 1)}
              data={[...new Set([...SEEDS, seeds ?? 1])]
                .sort((a, b) => a - b)
                .map((n) => ({ value: String(n), label: n === 1 ? 'Any seeds' : `At least ${n} seeds` }))}
              onChange={({ currentTarget }) =>
                change({ seeds: currentTarget.value === '1' ? undefined : Number(currentTarget.value) })
              }
            />
            {data && (
              <ColumnPicker
                columns={data.columns}
                onChange={(ids) => change({ columns: ids && joinNames(ids) })}
              />
            )}
            <Switch
              size="xs"
              label="Human-normalised"
              checked={normalised}
              onChange={({ currentTarget }) => change({ normalised: currentTarget.checked || undefined })}
            />
            <span className="muted" role="status">
              {ready && plural(rows.length, 'environment')}
            </span>
          </div>
          {data && (
            <p className="muted" style={{ margin: 0, maxWidth: '100ch' }}>
              {data.rule}. Every score of a row is of the protocol that the row names.
              {data.columns.some(({ source, shown: isShown }) => source === 'people' && isShown) &&
                ' Under “human, here” is the best mean of a person over at least 5 games of human play on this installation, where no human score has been published: scores of agents are neither ranked with it nor normalised by it.'}
              {normalised &&
                (sources.length > 0
                  ? ` Human-normalised: 100 (score − random) / (human − random), by the random agent and the person of ${sources.join('; ')}.`
                  : ' These protocols have no scores of a random agent and a person: nothing can be normalised.')}
            </p>
          )}
        </>
      )}
      {problem && (
        <Problem
          error={problem}
          onRetry={() => {
            void refetch();
            void catalogue.refetch();
          }}
        />
      )}
      {ready && <Terms ids={normalised ? [...TERMS, ...NORMALISED_TERMS] : TERMS} />}
      {ready && rows.length === 0 && <Empty>No matching environments.</Empty>}
      {ready && rows.length > 0 && (
        <ScoresTable
          scores={data}
          rows={rows}
          environments={environments}
          hosts={hosts?.items}
          isNormalised={normalised}
        />
      )}
      {ready && normalised && sources.length > 0 && <ScoreProfile request={request} />}
    </div>
  );
}
