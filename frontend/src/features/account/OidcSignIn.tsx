import { Button } from '@mantine/core';
import { loginNonce } from '@/api/pageSecret';
import { served } from '@/lib/base';
import type { SignInError } from './signInErrors';

const ERRORS: Record<SignInError, (name: string) => string> = {
  denied: (name) => `${name} did not sign you in.`,
  expired: () =>
    'The sign-in took longer than 10 minutes, or was started in another tab or browser. Try again.',
  failed: (name) =>
    `The response from ${name} is invalid. Try again. If that does not help, an admin can find the reason in the audit trail.`,
  name_taken: (name) =>
    `Another user already has your name. An admin can link them to your account at ${name}.`,
  no_role: (name) => `Your account at ${name} has no role here. Ask an admin.`,
  unavailable: (name) => `${name} cannot be reached. Try again in a minute, or sign in another way.`,
  unknown: (name) => `No user here is linked to your account at ${name}. Ask an admin.`,
  wait: () => 'Too many concurrent or failed sign-in attempts. Try again in a few minutes.',
};

/** Reports a failed sign-in through the provider. */
export function OidcProblem({ error, name }: { error: SignInError; name: string }) {
  return (
    <p role="alert" style={{ margin: 0, color: 'var(--failed)' }}>
      {ERRORS[error](name)}
    </p>
  );
}

/** Signs in through the provider, then returns to `from`. */
export function OidcSignIn({ name, from }: { name: string; from: string | undefined }) {
  const nonce = loginNonce();
  const query = new URLSearchParams({ ...(from !== undefined && { from }), ...(nonce && { nonce }) });
  return (
    <Button
      component="a"
      href={served(`/login/oidc?${query.toString()}`)}
      style={{ justifySelf: 'start' }}
      // A long name wraps on a phone.
      styles={{ root: { height: 'auto', minHeight: 36, paddingBlock: 4 }, label: { whiteSpace: 'normal' } }}
    >
      Sign in with {name}
    </Button>
  );
}
