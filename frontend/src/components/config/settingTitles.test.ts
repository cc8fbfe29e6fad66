import { expect, it } from 'vitest';
import { settingNames } from './settingTitles';

const TITLES = new Map([
  ['seed', 'Seed'],
  ['config.learning_rate', 'Learning rate'],
  ['config.frames', 'Max episode length'],
  ['environment_config.frames', 'Max episode length'],
]);

it('settingNames are titles, and of settings that the catalogue lacks their own names', () => {
  const names = settingNames(['config.learning_rate', 'seed', 'config.lr.initial'], TITLES);
  expect([...names.values()]).toEqual(['Learning rate', 'Seed', 'lr.initial']);
});

it('settingNames add the path where two settings have one title', () => {
  expect([...settingNames(['config.frames', 'environment_config.frames'], TITLES).values()]).toEqual([
    'Max episode length: config.frames',
    'Max episode length: environment_config.frames',
  ]);
});
