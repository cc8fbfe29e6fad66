/** Bounds of the fields of a run, of an evaluation and of a sweep, from the service's schemas of requests. */
import schemas from './schemas.json';

type Schema = Readonly<Record<string, unknown>>;
type Keyword = 'minimum' | 'maximum' | 'maxLength' | 'maxItems';

const { name, group, project, notes, tags, seed, seeds, priority } = schemas.RunFields.properties;
const evaluation = schemas.EvaluationRequest.properties;
const sweep = schemas.SweepSpec.properties;

/** A bound of a field, also of one that may be null. */
function bound(field: Schema, keyword: Keyword): number {
  const types = [field, ...((field.anyOf as Schema[] | undefined) ?? [])];
  const bound = types.map((type) => type[keyword]).find((value) => typeof value === 'number');
  if (bound === undefined) throw new Error(`the schema of a field has no ${keyword}`);
  return bound;
}

export const MAX_NAME = bound(name, 'maxLength');
export const MAX_GROUP = bound(group, 'maxLength');
export const MAX_PROJECT = bound(project, 'maxLength');
export const MAX_METRIC = bound(schemas.RunChanges.properties.return_metric, 'maxLength');
export const MAX_NOTES = bound(notes, 'maxLength');
export const MAX_TAGS = bound(tags, 'maxItems');
export const MAX_TAG = bound(tags.items, 'maxLength');
export const MAX_SEED = bound(seed, 'maximum');
export const MIN_PRIORITY = bound(priority, 'minimum');
export const MAX_PRIORITY = bound(priority, 'maximum');
/** Maximum number of runs started by one request. */
export const MAX_RUNS = bound(seeds, 'maxItems');
export const MIN_EVALUATION_EPISODES = bound(evaluation.episodes, 'minimum');
export const MAX_EVALUATION_EPISODES = bound(evaluation.episodes, 'maximum');
export const MIN_EVALUATION_SEED = bound(evaluation.seed, 'minimum');
export const MAX_EVALUATION_SEED = bound(evaluation.seed, 'maximum');
/** Seeds of each configuration of a sweep. */
export const MAX_SEEDS = bound(sweep.max_seeds, 'maximum');
export const MAX_CONFIGURATIONS = bound(sweep.n_configurations, 'maximum');
/** Runs of one request for figures. */
export const MAX_COMPARED = 100;
