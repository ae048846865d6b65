/** A list in pages. Each page is streamed into the store; nothing else of it is kept. */
import type { ApiClient, Query } from './client.ts';
import type { ListResult } from './diagnostics.ts';
import { ApiFailure, malformedAnswer } from './failure.ts';
import type { RequestGuard } from './request.ts';
import { type Encoding, listReader } from './encoding.ts';
import type { ReceivedObject } from './received.ts';
import type { Resource } from './resources.ts';
import type { ListEnvelope } from './split.ts';
import type { ResourceStore } from './store.ts';

const PAGE_SIZE = '500';

/**
 * Where a list may begin. `any`: what the server's cache holds will do. `latest`: what etcd holds now. Otherwise at
 * least this resourceVersion, so that the store does not go back in time when another server answers.
 */
export type NotOlderThan = 'any' | 'latest' | { readonly resourceVersion: string };

export async function listPages<T>(
  client: ApiClient,
  resource: Resource<T>,
  store: ResourceStore<T>,
  from: NotOlderThan,
  guard: RequestGuard,
): Promise<ListResult> {
  const take = (item: ReceivedObject<T>): void => store.set(item);
  store.beginList();
  // With a version and a limit, servers before 1.33 read from etcd: every node at once, after a crash. Without the
  // limit the list comes from their cache, as it does for version 0. In JSON it would have to be held whole.
  const isJson = client.encoding === 'json';
  let page: Query = {
    ...firstPage(isJson && from === 'any' ? 'latest' : from),
    ...(isJson || from === 'latest' || from === 'any' ? { limit: PAGE_SIZE } : {}),
  };
  for (let requests = 1; ; requests++) {
    let envelope: Page;
    try {
      envelope = await readPage(client, resource, take, page, guard);
    } catch (error) {
      // The pages left the server's memory while we read them, or another server of the same name does not know
      // their token. Everything at once needs neither.
      if (!isUnknownPage(error) || page['continue'] === undefined) throw error;
      store.beginList();
      page = firstPage(from);
      continue;
    }
    const { resourceVersion, continueToken, encoding } = envelope;
    if (continueToken === '') return { resourceVersion, objects: store.endList(), requests, encoding };
    // The token holds the version; giving one beside it is refused.
    page = { limit: PAGE_SIZE, continue: continueToken };
  }
}

/** The version of a list that is made now. */
export async function currentVersion<T>(
  client: ApiClient,
  resource: Resource<T>,
  guard: RequestGuard,
): Promise<string> {
  const { resourceVersion } = await readPage(client, resource, () => undefined, { limit: '1' }, guard);
  return resourceVersion;
}

function firstPage(from: NotOlderThan): Query {
  if (from === 'any') return { resourceVersion: '0' };
  if (from === 'latest') return {};
  return { resourceVersion: from.resourceVersion, resourceVersionMatch: 'NotOlderThan' };
}

function isUnknownPage(error: unknown): boolean {
  return error instanceof ApiFailure && (error.kind === 'expired' || error.kind === 'unsupported');
}

type Page = ListEnvelope & { readonly encoding: Encoding };

async function readPage<T>(
  client: ApiClient,
  resource: Resource<T>,
  take: (item: ReceivedObject<T>) => void,
  page: Query,
  guard: RequestGuard,
): Promise<Page> {
  const { path, selectors, name, kind } = resource;
  const response = await client.getObjects(path, { ...selectors, ...page }, guard.signal);
  guard.touch();
  if (response.status !== 200) throw await client.failureOf(response, `listing ${name}`);
  const reader = listReader(response.encoding, resource, take);
  for await (const chunk of response.body) {
    guard.touch();
    reader.push(chunk);
    const pause = guard.pause();
    if (pause) await pause;
  }
  const envelope = reader.end();
  const isList = envelope.kind === `${kind}List` && envelope.hasItems && envelope.resourceVersion !== '';
  if (!isList)
    throw malformedAnswer(`listing ${name}: the answer is not a ${kind}List with a resourceVersion`);
  return { ...envelope, encoding: response.encoding };
}
