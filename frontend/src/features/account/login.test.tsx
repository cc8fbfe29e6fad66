import { MantineProvider } from '@mantine/core';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { methodName } from './names';
import { OidcProblem, OidcSignIn } from './OidcSignIn';
import { SIGN_IN_ERRORS } from './signInErrors';

afterEach(cleanup);

it('signs in through the provider and returns to the page of the address', () => {
  const { rerender } = render(<OidcSignIn name="Example" from="/runs?q=tag:a&x=1" />, {
    wrapper: MantineProvider,
  });
  const link = screen.getByRole('link', { name: 'Sign in with Example' });
  expect(link.getAttribute('href')).toMatch(
    /^\/login\/oidc\?from=%2Fruns%3Fq%3Dtag%3Aa%26x%3D1&nonce=[\d-]+$/,
  );
  rerender(<OidcSignIn name="Example" from={undefined} />);
  expect(screen.getByRole('link').getAttribute('href')).toMatch(/^\/login\/oidc\?nonce=[\d-]+$/);
});

it('explains every error', () => {
  for (const error of SIGN_IN_ERRORS) {
    const { unmount } = render(<OidcProblem error={error} name="Example" />, { wrapper: MantineProvider });
    expect(screen.getByRole('alert').textContent).toMatch(/^(Example |The |Your |No |Another |Too ).*\.$/);
    unmount();
  }
});

it('names how a session began', () => {
  expect(['link', 'password', 'oidc', 'x', null].map(methodName)).toEqual([
    ', by link',
    ', by password',
    ', by single sign-on',
    '',
    '',
  ]);
});
