import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { isGone } from '@/api/problem';
import { sweepQuery, type SweepDetail } from '@/api/sweeps';
import { useSettingTitles } from '@/components/config/settingTitles';
import { ButtonLink } from '@/components/controls';
import { CopyCode } from '@/components/CopyCode';
import { Loading, PageProblem, titleOf } from '@/components/feedback';
import { Terms } from '@/components/Term';
import { Markdown } from '@/components/Markdown';
import { SaveAsStudy } from '@/features/papers/SaveAsStudy';
import { bestConfigurations, DEFAULT_SORT, runsOf } from '@/features/sweeps/configurations';
import { ConfigurationTable } from '@/features/sweeps/ConfigurationTable';
import { SettingScatter } from '@/features/sweeps/SettingScatter';
import { SweepHeader } from '@/features/sweeps/SweepHeader';
import { SweepSummary } from '@/features/sweeps/SweepSummary';
import classes from '@/features/sweeps/sweeps.module.css';
import { runsOfSweep, workspaceOf } from '@/features/sweeps/workspace';
import { plural } from '@/lib/format';
import { checked, defined, nameOf, type Unchecked, text } from '@/lib/search';

/** A column of the configurations: a setting such as `config.learning_rate`, or a name; `-`: descending. */
const CONFIGURATION_SORT = /^-?[a-z_]+(\.\w+)?$/;

const validateSearch = (search: Unchecked) =>
  checked({
    sort: CONFIGURATION_SORT.test(text(search.sort) ?? '') ? text(search.sort) : undefined,
    /** The setting against which scores are drawn. */
    setting: nameOf(search.setting),
    /** Whether the axis of this setting is logarithmic; by default, if the values span a wide range. */
    log: typeof search.log === 'boolean' ? search.log : undefined,
  });

export const Route = createFileRoute('/_shell/sweeps/$sweepId')({ validateSearch, component: SweepPage });

type Search = ReturnType<typeof validateSearch>;

function SweepPage() {
  const { sweepId } = Route.useParams();
  const { data, error, refetch } = useQuery(sweepQuery(sweepId));
  const sweep = isGone(error) ? undefined : data;
  useDocumentTitle(`${sweep?.name ?? titleOf(error, 'Sweep')} · Callboard`);
  return (
    <div className="page" style={{ display: 'grid', gap: 16 }}>
      {!sweep && <h1 className="page-title">{titleOf(error, 'Sweep')}</h1>}
      {error && <PageProblem error={error} onRetry={() => void refetch()} back="/sweeps" />}
      {!sweep && !error && <Loading label="Loading the sweep" lines={10} />}
      {sweep && <Content sweep={sweep} />}
    </div>
  );
}

function Content({ sweep }: { sweep: SweepDetail }) {
  const search = Route.useSearch();
  const navigate = Route.useNavigate();
  const titles = useSettingTitles([sweep]);
  const change = (to: { [K in keyof Search]?: Search[K] | undefined }): void => {
    void navigate({ search: defined({ ...search, ...to }), replace: true, resetScroll: false });
  };
  const best = bestConfigurations(sweep);
  const compared = runsOf(best);
  return (
    <>
      <SweepHeader sweep={sweep} onDeleted={() => void navigate({ to: '/sweeps' })} />
      {sweep.notes && <Markdown text={sweep.notes} />}
      {sweep.spec.run.origin === 'external' && sweep.state === 'running' && (
        <section className={classes.section} aria-label="Terminal">
          <h2 className="section-title">Start its runs in a terminal</h2>
          <CopyCode code={`callboard experiments run ${sweep.id} -- python train.py`} label="Command" />
          <p className="muted" style={{ margin: 0 }}>
            Your script gets the settings of each run as --name=value, until no configuration is left. Several
            terminals and machines share them.
          </p>
        </section>
      )}
      <SweepSummary sweep={sweep} titles={titles} />
      <section className={classes.section} aria-label="Configurations">
        <header className="row wrap">
          <h2 className="section-title">Configurations</h2>
          <span className="grow" />
          {compared.length > 0 && (
            <ButtonLink
              variant="default"
              to="/"
              search={{ list: 'beside', runs: compared.join(','), group: 'seed' }}
              title={`Curves and statistics of the best ${plural(best.length, 'configuration')}`}
            >
              Compare the best
            </ButtonLink>
          )}
          {compared.length > 0 && (
            <ButtonLink
              variant="default"
              to="/"
              search={workspaceOf(sweep)}
              title="Which settings matter, scores and curves of its runs, as panels that can be changed"
            >
              Workspace
            </ButtonLink>
          )}
          <ButtonLink variant="default" to="/" search={runsSearchOf(sweep)}>
            Show runs
          </ButtonLink>
          <SaveAsStudy source={{ sweep: sweep.id }} />
        </header>
        <ConfigurationTable
          sweep={sweep}
          sort={search.sort ?? DEFAULT_SORT}
          onSort={(sort) => change({ sort: sort === DEFAULT_SORT ? undefined : sort })}
          titles={titles}
        />
        <Terms ids={['racing', 'not_eliminated', 'iqm', 'seed']} />
      </section>
      <SettingScatter
        sweep={sweep}
        titles={titles}
        setting={search.setting}
        onSetting={(setting) => change({ setting, log: undefined })}
        log={search.log}
        onLog={(log) => change({ log })}
      />
    </>
  );
}

/** The list of a sweep's runs. */
function runsSearchOf(sweep: SweepDetail) {
  const runs = runsOfSweep(sweep);
  return 'q' in runs ? runs : { selected: runs.runs };
}
