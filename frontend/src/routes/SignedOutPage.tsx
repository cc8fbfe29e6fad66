import { Code } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { getRouteApi } from '@tanstack/react-router';

const route = getRouteApi('/signed-out');

/** Where an expired session ends up: how to come back in. */
export default function SignedOutPage() {
  const { from } = route.useSearch();
  useDocumentTitle('Signed out · Callboard');
  return (
    <main style={{ maxWidth: 560, margin: '12vh auto 0', padding: 24 }}>
      <img src="/favicon.svg" alt="" width="40" height="40" />
      <h1 className="page-title" style={{ marginTop: 16 }}>
        You are signed out
      </h1>
      <p>
        Callboard lets you in through a link that works once. <Code>callboard up</Code> prints one each time
        it starts; to get another while it runs, type this where it runs:
      </p>
      <Code block>callboard login-link</Code>
      <p>
        Open the link in this browser. Nothing was stopped: runs go on whether or not anyone is signed in.
        {from && (
          <>
            {' '}
            Afterwards you can go back to <a href={from}>the page you came from</a>.
          </>
        )}
      </p>
    </main>
  );
}
