import { Code, TextInput } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { useMutation } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { asProblem } from '@/api/problem';
import { logIn } from '@/api/session';
import { BusyButton } from '@/components/BusyButton';
import { PasswordField } from '@/components/PasswordField';

const route = getRouteApi('/login');

/** Where an expired session ends up: how to come back in. */
export default function LoginPage() {
  const { from, expired } = route.useSearch();
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const field = useRef<HTMLInputElement>(null);
  useDocumentTitle('Sign in · Callboard');
  const enter = useMutation({
    mutationFn: () => logIn(name, password),
    // Loaded anew, so that nothing of the old session stays.
    onSuccess: () => location.assign(from ?? '/'),
    onError: () => field.current?.focus(),
  });
  return (
    <main style={{ display: 'grid', gap: 16, maxWidth: 480, margin: '10vh auto 0', padding: 24 }}>
      <img src="/favicon.svg" alt="" width="40" height="40" />
      <h1 className="page-title">Sign in to Callboard</h1>
      {expired && (
        <p role="alert" style={{ margin: 0, color: 'var(--failed)' }}>
          That link has been used already or is too old. Make another:
        </p>
      )}
      <section style={{ display: 'grid', gap: 8 }}>
        <h2 className="section-title">With a link that works once</h2>
        <span>
          <Code>callboard up</Code> prints one each time it starts. While it runs, this makes another:
        </span>
        <Code block>callboard login-link</Code>
      </section>
      <form
        style={{ display: 'grid', gap: 8 }}
        onSubmit={(event) => {
          event.preventDefault();
          enter.mutate();
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
          error={enter.isError ? asProblem(enter.error).message : undefined}
          onChange={({ currentTarget }) => setPassword(currentTarget.value)}
        />
        <BusyButton type="submit" loading={enter.isPending} style={{ justifySelf: 'start' }}>
          Sign in
        </BusyButton>
      </form>
      <p className="muted" style={{ margin: 0 }}>
        Runs go on whether or not anyone is signed in.
      </p>
    </main>
  );
}
