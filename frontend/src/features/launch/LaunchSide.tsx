import { pictureOf } from '@/components/world/pictures';
import { Choices } from './Choices';
import {
  algorithmOf,
  algorithmsFor,
  presetsOf,
  withAlgorithm,
  withPreset,
  withWorld,
  worldOf,
  type Catalogue,
  type Draft,
} from './draft';
import classes from './launch.module.css';
import { WorldPicker } from './WorldPicker';

type Props = { catalogue: Catalogue; draft: Draft; onEdit: (draft: Draft) => void };

const DEFAULTS = 'defaults';

/** What to run: the world, the algorithm, and where its settings come from. */
export function LaunchSide({ catalogue, draft, onEdit }: Props) {
  const world = worldOf(catalogue, draft);
  const algorithm = algorithmOf(catalogue, draft);
  const presets = presetsOf(catalogue, draft);
  const picture = pictureOf(draft.environment);
  return (
    <div className={classes.side}>
      <section className={`panel ${classes.block}`}>
        <h2 className="section-title">World</h2>
        <WorldPicker
          worlds={catalogue.environments}
          value={draft.environment}
          onChange={(id) => onEdit(withWorld(catalogue, draft, id))}
        />
        <div className={classes.chosen}>
          {picture && <img src={picture} alt="" width="64" />}
          <span className="muted">{world?.summary}</span>
        </div>
      </section>
      <section className={`panel ${classes.block}`}>
        <h2 className="section-title">Algorithm</h2>
        <Choices
          label="Algorithm"
          choices={algorithmsFor(catalogue, world).map(({ id, title, summary }) => ({
            id,
            title,
            text: summary,
          }))}
          value={draft.algorithm}
          onChange={(id) => onEdit(withAlgorithm(catalogue, draft, id))}
        />
        <span className="muted">{algorithm?.paper}</span>
      </section>
      <section className={`panel ${classes.block}`}>
        <h2 className="section-title">Settings from</h2>
        <Choices
          label="Preset"
          choices={[
            { id: DEFAULTS, title: 'Defaults', text: 'Those of the algorithm for this kind of world.' },
            ...presets.map(({ id, title, description }) => ({ id, title, text: description })),
          ]}
          value={draft.preset ?? DEFAULTS}
          onChange={(id) => onEdit(withPreset(catalogue, draft, id))}
        />
      </section>
    </div>
  );
}
