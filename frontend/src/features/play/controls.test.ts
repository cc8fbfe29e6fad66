import { expect, it } from 'vitest';
import { actionOf, controlsIn, heldByGamepad, type Control } from './controls';

const held = (...controls: Control[]): Set<Control> => new Set(controls);

it('actionOf finds the action with most of the held controls, and none that is not held', () => {
  const names = ['NOOP', 'FIRE', 'RIGHT', 'LEFT', 'RIGHTFIRE', 'LEFTFIRE'];
  expect(actionOf(names, held())).toBeNull();
  expect(actionOf(names, held('right'))).toBe(2);
  expect(actionOf(names, held('right', 'fire'))).toBe(4);
  expect(actionOf(names, held('up', 'left'))).toBe(3);
  expect(actionOf(names, held('down'))).toBeNull();
});

it('actionOf prefers the control that was pressed last where no action has both', () => {
  const names = ['NOOP', 'FIRE', 'RIGHT', 'LEFT'];
  expect(actionOf(names, held('fire', 'left'))).toBe(3);
  expect(actionOf(names, held('left', 'fire'))).toBe(1);
  expect(actionOf(names, held('right', 'left'))).toBe(3);
});

it('actionOf knows the actions of labyrinths, cars and small environments', () => {
  const maze = [
    'FORWARD',
    'BACKWARD',
    'STRAFE_LEFT',
    'STRAFE_RIGHT',
    'LOOK_LEFT',
    'LOOK_RIGHT',
    'FORWARD_LOOK_LEFT',
  ];
  expect(actionOf(maze, held('up', 'left'))).toBe(6);
  expect(actionOf(maze, held('left'))).toBe(4);
  expect(actionOf(maze, held('strafeRight'))).toBe(3);
  const car = ['LEFT_GAS', 'LEFT_COAST', 'STRAIGHT_GAS', 'STRAIGHT_COAST', 'RIGHT_BRAKE'];
  expect(actionOf(car, held('left'))).toBe(1);
  expect(actionOf(car, held('left', 'up'))).toBe(0);
  expect(actionOf(car, held('up'))).toBe(2);
  expect(actionOf(['LEFT', 'STAY', 'RIGHT'], held('right'))).toBe(2);
  expect(actionOf(['TORQUE -1', 'NO TORQUE', 'TORQUE +1'], held('right'))).toBe(2);
});

it('controlsIn lists the controls of an environment', () => {
  expect(controlsIn(['NOOP', 'FIRE', 'RIGHT', 'LEFT'])).toEqual(['left', 'right', 'fire']);
});

it('heldByGamepad reads stick, cross and buttons', () => {
  const buttons = Array.from({ length: 16 }, (_, index) => ({ pressed: index === 0 || index === 14 }));
  expect(heldByGamepad({ axes: [0.1, -0.9], buttons: buttons as unknown as GamepadButton[] })).toEqual([
    'up',
    'left',
    'fire',
  ]);
});
