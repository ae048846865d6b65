/** Asks the proxy that served this page. The answers are those of the local API: docs/reference/api.md. */
export { apiPath } from './address.ts';

import { ApiFailure } from './apiFailure.ts';

export { ApiFailure } from './apiFailure.ts';

const TOKEN_KEY = 'junction-token';

/** A link has it behind `#`, which no browser sends and no server logs. It stays in this tab. */
export function keepToken(): void {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (token === null) return;
  sessionStorage.setItem(TOKEN_KEY, token);
  history.replaceState(null, '', location.pathname + location.search);
}

export function setToken(token: string): void {
  sessionStorage.setItem(TOKEN_KEY, token);
}

export function hasToken(): boolean {
  return sessionStorage.getItem(TOKEN_KEY) !== null;
}

function headers(): Record<string, string> {
  const token = sessionStorage.getItem(TOKEN_KEY);
  return token === null ? {} : { Authorization: `Bearer ${token}` };
}

/** Rejects with ApiFailure, or with the signal's reason. */
export async function ask(path: string, signal?: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { headers: headers(), cache: 'no-store', ...(signal && { signal }) });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiFailure(0, 'the proxy does not answer', 'It may be restarting; this page tries again.');
  }
  if (response.ok) return response;
  throw await readFailure(response);
}

export async function askJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await ask(path, signal)).json() as Promise<T>;
}

async function readFailure(response: Response): Promise<ApiFailure> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as { error: { message: string; hint?: string; parameter?: string } };
    return new ApiFailure(response.status, error.message, error.hint, error.parameter);
  } catch {
    return new ApiFailure(response.status, text.trim() || response.statusText);
  }
}
