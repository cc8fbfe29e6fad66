import { MantineProvider } from '@mantine/core';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { EnvironmentPicker } from './EnvironmentPicker';

afterEach(cleanup);

const named = (id: string, title: string) => ({ id, title, family: 'some', extra: null });

it('EnvironmentPicker shows each environment with its image, loaded once it is in view', () => {
  render(
    <MantineProvider env="test">
      <EnvironmentPicker
        environments={[
          named('ALE/Pong-v5', 'Pong'),
          named('CartPole-v1', 'CartPole'),
          named('Custom/Line-v0', 'Line'),
        ]}
        hosts={undefined}
        value="CartPole-v1"
        onChange={() => undefined}
      />
    </MantineProvider>,
  );
  const images = screen.getAllByRole('option').map((option) => option.querySelector('img'));
  const files = images.map((image) =>
    image
      ?.getAttribute('src')
      ?.split(/[/?]/)
      .find((part) => part.includes('webp')),
  );
  expect(files).toEqual(['ALE-Pong-v5.webp', 'CartPole-v1.webp', undefined]);
  expect(images.map((image) => image?.getAttribute('loading'))).toEqual(['lazy', 'lazy', undefined]);
});
