/** What stands where an answer is not here yet, did not come, or is empty. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type ApiFailure, setToken } from '../api.ts';
import type { Answer } from '../useAnswer.ts';

/** Said after a moment: most answers come before one could read it. */
const PATIENCE_MS = 200;

export function Loading({ what }: { readonly what: string }) {
  const [isLate, setIsLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsLate(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class="state" aria-busy="true">
      {isLate && <p role="status">Loading {what}…</p>}
    </div>
  );
}

export function Failed({ what, failure }: { readonly what: string; readonly failure: ApiFailure }) {
  if (failure.status === 401 || failure.status === 403) return <TokenNeeded failure={failure} />;
  return (
    <div class="state state-error" role="alert">
      <h2>{failure.status === 404 ? failure.message : `Cannot load ${what}`}</h2>
      {failure.status !== 404 && <p>{failure.message}</p>}
      {failure.hint !== undefined && <p class="quiet">{failure.hint}</p>}
    </div>
  );
}

function TokenNeeded({ failure }: { readonly failure: ApiFailure }) {
  return (
    <form
      class="state state-error"
      onSubmit={(event) => {
        event.preventDefault();
        const token = new FormData(event.currentTarget).get('token');
        if (typeof token === 'string') setToken(token.trim());
        location.reload();
      }}
    >
      <h2>This page needs a token</h2>
      <p>{failure.hint ?? failure.message}</p>
      <label>
        Token <input name="token" type="password" autoComplete="off" required />
      </label>
      <button type="submit">Open</button>
    </form>
  );
}

export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="state">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** The answer, or what stands in its place; an old one with a word that it is old. */
export function Shown<T>({
  what,
  answer,
  children,
}: {
  readonly what: string;
  readonly answer: Answer<T>;
  readonly children: (value: T) => ComponentChildren;
}) {
  switch (answer.kind) {
    case 'loading':
      return <Loading what={what} />;
    case 'failed':
      return <Failed what={what} failure={answer.failure} />;
    case 'here':
      return <>{children(answer.value)}</>;
  }
}
