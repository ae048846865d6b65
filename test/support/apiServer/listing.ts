/** Lists, whole or in pages that all show one moment. */
import type { ServedEncoding } from './negotiate.ts';
import { encodeItem, encodeListMeta, ENVELOPE_TAIL, envelopeHead } from './protobuf/encode.ts';
import type { ListOptions } from './options.ts';
import type { ServedResource } from './resources.ts';
import type { Selector } from './selectors.ts';
import { badRequest, expired, tooLarge } from './status.ts';
import type { Entry, ObjectStore } from './store.ts';

interface Token {
  readonly snapshot: number;
  readonly from: number;
}

export class Lister {
  readonly #store: ObjectStore;
  /** Entries are shared with the store: a snapshot costs an array of references. */
  readonly #snapshots = new Map<number, { readonly revision: number; readonly entries: readonly Entry[] }>();
  #nextSnapshot = 1;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  /** Continue tokens of before are worth nothing from now on. */
  forgetPages(): void {
    this.#snapshots.clear();
  }

  /** The pieces of the body. */
  *list(
    resource: ServedResource,
    selector: Selector | undefined,
    options: ListOptions,
    encoding: ServedEncoding,
  ): Generator<Uint8Array> {
    const { id, from, limit } = this.#page(resource, selector, options);
    const snapshot = this.#snapshots.get(id);
    if (snapshot === undefined) throw new Error('no snapshot');
    const { entries, revision } = snapshot;
    const end = limit === 0 ? entries.length : Math.min(from + limit, entries.length);
    const remaining = entries.length - end;
    const more = {
      continue: Buffer.from(JSON.stringify({ snapshot: id, from: end } satisfies Token)).toString(
        'base64url',
      ),
      // etcd counts keys, so nobody knows it where a selector leaves some of them out.
      ...(selector === undefined ? { remainingItemCount: remaining } : {}),
    };
    if (remaining === 0) this.#snapshots.delete(id);
    const head = {
      kind: `${resource.kind}List`,
      apiVersion: resource.apiVersion,
      metadata: { resourceVersion: String(revision), ...(remaining > 0 ? more : {}) },
    };
    if (encoding === 'protobuf') {
      yield* encodedList(head, entries.slice(from, end));
      return;
    }
    yield Buffer.from(`${JSON.stringify(head).slice(0, -1)},"items":[`);
    for (let index = from; index < end; index++) {
      if (index > from) yield Buffer.from(',');
      yield entries[index]?.json ?? Buffer.alloc(0);
    }
    yield Buffer.from(']}\n');
  }

  #page(
    resource: ServedResource,
    selector: Selector | undefined,
    { continueToken, resourceVersion, limit, match }: ListOptions,
  ): { readonly id: number; readonly from: number; readonly limit: number } {
    if (continueToken !== '') return { ...this.#continue(continueToken), limit };
    const store = this.#store;
    const wanted = Number(resourceVersion || '0');
    if (wanted > store.revision) throw tooLarge(wanted, store.revision);
    const isExact = match === 'Exact' || (match === '' && limit > 0 && wanted > 0);
    if (isExact && wanted < store.compacted) throw expired('The provided resource version is too old.');
    const revision = isExact ? wanted : store.revision;
    const entries = isExact ? store.listAt(resource, wanted) : store.list(resource);
    const id = this.#nextSnapshot++;
    this.#snapshots.set(id, {
      revision,
      entries: selector === undefined ? entries : entries.filter(selector),
    });
    // A list from the watch cache has no pages.
    return { id, from: 0, limit: resourceVersion === '0' ? 0 : limit };
  }

  #continue(text: string): { readonly id: number; readonly from: number } {
    let token: Token;
    try {
      token = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Token;
    } catch (error) {
      throw badRequest(`invalid continue token: continue key is not valid: ${String(error)}`);
    }
    if (!this.#snapshots.has(token.snapshot)) {
      throw expired(
        'The provided continue parameter is too old to display a consistent list result. You can start a new list ' +
          'without the continue parameter.',
      );
    }
    return { id: token.snapshot, from: token.from };
  }
}

interface ListHead {
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: object;
}

function* encodedList(
  { kind, apiVersion, metadata }: ListHead,
  entries: readonly Entry[],
): Generator<Uint8Array> {
  const items = entries.map(({ protobuf }) => encodeItem(protobuf ?? Buffer.alloc(0)));
  const first = encodeListMeta(metadata);
  const length = items.reduce((sum, item) => sum + item.length, first.length);
  yield envelopeHead(kind, apiVersion, length);
  yield first;
  yield* items;
  yield ENVELOPE_TAIL;
}
