import { protocolLabel } from '@/lib/format';
import { Choices } from './Choices';
import { presetsOf, withPreset, type Catalogue, type Draft } from './draft';
import classes from './launch.module.css';

type Props = { catalogue: Catalogue; draft: Draft; onEdit: (draft: Draft) => void };

const DEFAULTS = 'defaults';

/** A text with protocols' titles in place of their ids. */
const inWords = (text: string): string => text.replace(/\b\w+_starts\w*/g, protocolLabel);

/** The presets of the algorithm for the environment, and the defaults. */
export function PresetPanel({ catalogue, draft, onEdit }: Props) {
  return (
    <section className={`panel ${classes.block} ${classes.preset}`}>
      <h2 className="section-title">Preset</h2>
      <Choices
        label="Preset"
        wide
        choices={[
          ...presetsOf(catalogue, draft).map(({ id, title, description, measured, measured_on: on }) => ({
            id,
            title,
            text: [description, measured ? `On ${on}: ${inWords(measured)}` : 'No measured result.'],
          })),
          {
            id: DEFAULTS,
            title: 'Defaults',
            text: ['The algorithm’s defaults for this kind of environment.'],
          },
        ]}
        value={draft.preset ?? DEFAULTS}
        onChange={(id) => onEdit(withPreset(catalogue, draft, id))}
      />
    </section>
  );
}
