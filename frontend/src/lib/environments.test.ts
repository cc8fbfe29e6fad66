import { describe, expect, it } from 'vitest';
import { environmentImage, missingExtra, shortEnvironmentName, unavailableReason } from './environments';

describe('environmentImage', () => {
  it.each(['ALE/Pong-v5', 'HalfCheetah-Pixels-v5', 'Labyrinth-Small-v0', 'Racing-Fast-v0', 'CartPole-v1'])(
    'returns an image for %s',
    (id) => expect(environmentImage(id)).toMatch(/\.webp/),
  );

  it('returns undefined for a custom environment', () =>
    expect(environmentImage('Custom/Line-v0')).toBeUndefined());
});

describe('shortEnvironmentName', () => {
  it.each([
    ['ALE/Qbert-v5', 'Q*bert'],
    ['ALE/Hero-v5', 'H.E.R.O.'],
    ['ALE/BeamRider-v5', 'Beam Rider'],
    ['ALE/Pong-v5', 'Pong'],
    ['ALE/Unheard-v5', 'Unheard'],
    ['CartPole-v1', 'CartPole'],
    ['Custom/Line-v0', 'Custom/Line'],
  ])('names %s as %s', (id, name) => expect(shortEnvironmentName(id)).toBe(name));
});

describe('missingExtra', () => {
  const racing = { title: 'Racing', extra: 'racing' };
  const host = (...missing_extras: string[]) => ({ missing_extras });

  it('is null while a host has the extra, none is needed, or no host is known', () => {
    expect(missingExtra(racing, undefined)).toBeNull();
    expect(missingExtra(racing, [])).toBeNull();
    expect(missingExtra(racing, [host('racing'), host('gorila')])).toBeNull();
    expect(missingExtra({ title: 'CartPole', extra: null }, [host('racing')])).toBeNull();
  });

  it('names the extra that every host lacks', () =>
    expect(missingExtra(racing, [host('racing'), host('gorila', 'racing')])).toBe(
      "Racing needs callboard[racing], which no host has. On one: pip install 'callboard[racing]'.",
    ));
});

describe('unavailableReason', () => {
  const racing = { id: 'CarRacing-v3', title: 'Car racing' };
  const host = (alive: boolean, ...environments: string[]) => ({ alive, environments });

  it('is null while a connected host can run the environment, or hosts are unknown', () => {
    expect(unavailableReason(racing, undefined)).toBeNull();
    expect(unavailableReason(racing, [host(true), host(true, 'CarRacing-v3')])).toBeNull();
  });

  it('counts connected hosts only', () => {
    expect(unavailableReason(racing, [host(true), host(true), host(false, 'CarRacing-v3')])).toBe(
      'None of the 2 connected hosts can run Car racing.',
    );
    expect(unavailableReason(racing, [host(false, 'CarRacing-v3')])).toBe('No host is connected.');
  });
});
