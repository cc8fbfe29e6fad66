/** What a player presses, and the action of the environment that it means. */

const CONTROLS = ['up', 'down', 'left', 'right', 'fire', 'strafeLeft', 'strafeRight'] as const;
export type Control = (typeof CONTROLS)[number];

/** Keys by their place on the keyboard, whatever the layout. */
const KEYS: Record<string, Control> = {
  ArrowUp: 'up',
  ArrowDown: 'down',
  ArrowLeft: 'left',
  ArrowRight: 'right',
  KeyW: 'up',
  KeyS: 'down',
  KeyA: 'left',
  KeyD: 'right',
  Space: 'fire',
  KeyQ: 'strafeLeft',
  KeyE: 'strafeRight',
};

export const controlOf = (code: string): Control | undefined => KEYS[code];

/** The controls that stand for an action, by its name; none for the action of pressing nothing. */
function controlsOf(name: string): Control[] {
  const text = name.toUpperCase();
  const controls: Control[] = [];
  if (/UP|FORWARD|GAS/.test(text)) controls.push('up');
  if (/DOWN|BACKWARD|BRAKE/.test(text)) controls.push('down');
  if (text.includes('STRAFE_LEFT')) controls.push('strafeLeft');
  else if (/LEFT|TORQUE -1/.test(text)) controls.push('left');
  if (text.includes('STRAFE_RIGHT')) controls.push('strafeRight');
  else if (/RIGHT|TORQUE \+1/.test(text)) controls.push('right');
  if (text.includes('FIRE')) controls.push('fire');
  return controls;
}

/**
 * The action whose controls are all held; null if there is none. Among several, the action with the most controls
 * wins, then the action of the control that was pressed last: a player who holds Fire in a game without "left and
 * fire" can still steer.
 *
 * @param held - In the order in which they were pressed.
 */
export function actionOf(names: readonly string[], held: ReadonlySet<Control>): number | null {
  const order = [...held];
  let best: number | null = null;
  let [most, latest] = [0, -1];
  names.forEach((name, index) => {
    const controls = controlsOf(name);
    if (controls.length === 0 || !controls.every((control) => held.has(control))) return;
    const pressed = Math.max(...controls.map((control) => order.indexOf(control)));
    if (controls.length < most || (controls.length === most && pressed <= latest)) return;
    [best, most, latest] = [index, controls.length, pressed];
  });
  return best;
}

/** The controls that an environment has. */
export const controlsIn = (names: readonly string[]): Control[] =>
  CONTROLS.filter((control) => names.some((name) => controlsOf(name).includes(control)));

const PRESSED = 0.5;

/** The controls that a gamepad holds: its stick or cross, its first button, and its shoulder buttons. */
export function heldByGamepad({ axes, buttons }: Pick<Gamepad, 'axes' | 'buttons'>): Control[] {
  const [x = 0, y = 0] = axes;
  const isDown = (button: number): boolean => buttons[button]?.pressed ?? false;
  const held: [Control, boolean][] = [
    ['up', y < -PRESSED || isDown(12)],
    ['down', y > PRESSED || isDown(13)],
    ['left', x < -PRESSED || isDown(14)],
    ['right', x > PRESSED || isDown(15)],
    ['fire', isDown(0)],
    ['strafeLeft', isDown(4)],
    ['strafeRight', isDown(5)],
  ];
  return held.filter(([, down]) => down).map(([control]) => control);
}
