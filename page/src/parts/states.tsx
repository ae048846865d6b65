/** What stands where an answer is not here yet, did not come, or is empty. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type ApiFailure, hasToken, setToken } from '../api.ts';
import type { Answer } from '../useAnswer.ts';
import { Ago } from './time.tsx';

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
      {isLate && (
        <p role="status">
          <span class="spinner" aria-hidden="true" /> Loading {what}…
        </p>
      )}
    </div>
  );
}

export function Failed({
  what,
  failure,
  again,
}: {
  readonly what: string;
  readonly failure: ApiFailure;
  readonly again?: (() => void) | undefined;
}) {
  if (failure.status === 401) return <TokenNeeded failure={failure} />;
  if (failure.status === 403 || failure.status === 421) return <NotAllowed failure={failure} />;
  const isAbsent = failure.status === 404;
  return (
    <div class={isAbsent ? 'state' : 'state state-error'} role="alert">
      <h2>{isAbsent ? upperFirst(failure.message) : `Cannot load ${what}`}</h2>
      {!isAbsent && <p>{upperFirst(failure.message)}.</p>}
      {failure.hint !== undefined && <p class="quiet">{failure.hint}</p>}
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** By another name than its own, or from within another page: trying again helps nobody. */
function NotAllowed({ failure }: { readonly failure: ApiFailure }) {
  return (
    <div class="state state-error" role="alert">
      <h2>The proxy does not answer this page</h2>
      <p>{upperFirst(failure.message)}.</p>
    </div>
  );
}

function upperFirst(text: string): string {
  // A command stays as it is typed.
  return text.startsWith('junction ') ? text : text.charAt(0).toUpperCase() + text.slice(1);
}

function TokenNeeded({ failure }: { readonly failure: ApiFailure }) {
  return (
    <form
      class="state token"
      onSubmit={(event) => {
        event.preventDefault();
        const token = new FormData(event.currentTarget).get('token');
        if (typeof token !== 'string') return;
        setToken(token.trim());
        location.reload();
      }}
    >
      <h2>{hasToken() ? 'This is not the token' : 'This page needs a token'}</h2>
      <p>{failure.hint ?? failure.message}</p>
      <p class="token-line">
        <label>
          Token <input name="token" type="password" autoComplete="off" required />
        </label>
        <button type="submit" class="primary">
          Open
        </button>
      </p>
      <p class="quiet">It stays in this tab, and is sent to this proxy only.</p>
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
      return <Failed what={what} failure={answer.failure} again={answer.again} />;
    case 'here':
      return (
        <>
          {answer.failure && <Old what={what} failure={answer.failure} at={answer.at} />}
          {children(answer.value)}
        </>
      );
  }
}

/** Of a failure without an answer, the frame says enough. */
export function Old({
  what,
  failure,
  at,
}: {
  readonly what: string;
  readonly failure: ApiFailure;
  readonly at: number;
}) {
  if (failure.status === 0) return null;
  return (
    <p class="notice" role="status">
      <span>
        This was read <Ago at={at} />. Cannot load {what} again: {failure.message}.
      </span>
    </p>
  );
}
