import { Code, TextInput } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { useMutation, useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { logIn, loginMethodsQuery } from '@/api/account';
import { asProblem } from '@/api/problem';
import { LoadingButton, PasswordField } from '@/components/controls';
import { Loading } from '@/components/feedback';
import { OidcProblem, OidcSignIn } from '@/features/account/OidcSignIn';
import { served } from '@/lib/base';
import { checked, flag, oneOf, type Unchecked } from '@/lib/search';
import { SIGN_IN_ERRORS } from '@/features/account/signInErrors';

/** A URL of this site. Browsers read `//host` and `/\host` as other sites, and drop tabs and line breaks. */
const SAME_SITE_URL = /^\/(?![/\\])[^\\\x00-\x20\x7f]*$/; // eslint-disable-line no-control-regex

const sameSiteUrl = (value: unknown): string | undefined =>
  typeof value === 'string' && SAME_SITE_URL.test(value) ? value : undefined;

const validateSearch = (search: Unchecked) =>
  checked({
    from: sameSiteUrl(search.from),
    /** Whether an invalid one-time link led here. */
    expired: flag(search.expired),
    /** Whether this browser has lost the secret of its session. */
    lost: flag(search.lost),
    error: oneOf(search.error, SIGN_IN_ERRORS),
  });

export const Route = createFileRoute('/login')({ validateSearch, component: LoginPage });

/** The sign-in page: by an OpenID Connect provider if one is configured, one-time link or password. */
function LoginPage() {
  const { from, expired, lost, error } = Route.useSearch();
  const { data: methods, isPending } = useQuery(loginMethodsQuery);
  useDocumentTitle('Sign in · Callboard');
  return (
    <main
      style={{
        display: 'grid',
        gap: 16,
        maxWidth: 480,
        margin: '0 auto',
        padding: 'calc(10vh + 24px) 24px 24px',
      }}
    >
      <img src={served('/favicon.svg')} alt="" width="40" height="40" />
      <h1 className="page-title">Sign in to Callboard</h1>
      {isPending ? (
        <Loading label="Loading the sign-in methods" />
      ) : (
        <>
          {lost && (
            <p role="alert" style={{ margin: 0, color: 'var(--failed)' }}>
              This browser no longer has its part of your session: its site data was cleared, or Callboard’s
              address or port has changed. Nothing else is lost; sign in again.
            </p>
          )}
          {error && <OidcProblem error={error} name={methods?.oidc?.name ?? 'The provider'} />}
          {methods?.oidc && <OidcSignIn name={methods.oidc.name} from={from} />}
          <LocalSignIn from={from} expired={expired} />
        </>
      )}
      <p className="muted" style={{ margin: 0 }}>
        Runs continue whether or not anyone is signed in. <a href={served('/help/')}>Documentation</a>
      </p>
    </main>
  );
}

type Props = { from: string | undefined; expired: true | undefined };

/** By one-time link or password. */
function LocalSignIn({ from, expired }: Props) {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const field = useRef<HTMLInputElement>(null);
  const signIn = useMutation({
    mutationFn: () => logIn(name, password),
    // A full page load, so that nothing of the old session remains.
    onSuccess: () => location.assign(served(from ?? '/')),
    onError: () => field.current?.focus(),
  });
  return (
    <>
      {expired && (
        <p role="alert" style={{ margin: 0, color: 'var(--failed)' }}>
          This link has expired or has already been used. Create a new one:
        </p>
      )}
      <section style={{ display: 'grid', gap: 8 }}>
        <h2 className="section-title">With a one-time link</h2>
        <span>
          <Code>callboard up</Code> prints one each time it starts. While it is running, create another with:
        </span>
        <Code block>callboard login-link</Code>
        <span className="muted">
          In a clone it is <Code>.venv/bin/callboard login-link</Code>.
        </span>
      </section>
      <form
        style={{ display: 'grid', gap: 8 }}
        onSubmit={(event) => {
          event.preventDefault();
          signIn.mutate();
        }}
      >
        <h2 className="section-title">With a password</h2>
        <TextInput
          label="Name"
          autoComplete="username"
          required
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <PasswordField
          ref={field}
          label="Password"
          autoComplete="current-password"
          required
          value={password}
          error={signIn.isError ? asProblem(signIn.error).message : undefined}
          onChange={({ currentTarget }) => setPassword(currentTarget.value)}
        />
        <LoadingButton type="submit" loading={signIn.isPending} style={{ justifySelf: 'start' }}>
          Sign in
        </LoadingButton>
      </form>
    </>
  );
}
