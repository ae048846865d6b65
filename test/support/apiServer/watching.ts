/** Open watches, and what can be done to them. */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../../src/time/clock.ts';
import { drained, HEAD } from './answers.ts';
import type { ListOptions } from './options.ts';
import type { ServedResource } from './resources.ts';
import type { Selector } from './selectors.ts';
import { expired, type StatusError, statusObject } from './status.ts';
import { atRevision, type Change, type Entry, type ObjectStore } from './store.ts';

const BOOKMARK_MS = 60_000;
/** The last one is sent so long before the agreed end. */
const LAST_BOOKMARK_MS = 2000;

export interface WatchOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly resource: ServedResource;
  readonly selector: Selector | undefined;
  readonly options: ListOptions;
  readonly response: ServerResponse;
}

export class Watch {
  readonly resource: ServedResource;
  readonly #watch: WatchOptions;
  readonly #endings: (() => unknown)[] = [];
  #isDumb = false;

  constructor(watch: WatchOptions) {
    this.#watch = watch;
    this.resource = watch.resource;
  }

  /** Resolves when everything that is due at the beginning has been handed to the connection. */
  async open(): Promise<void> {
    const { store, clock, response, options, resource } = this.#watch;
    response.writeHead(200, HEAD);
    response.flushHeaders();
    response.on('close', () => this.#release());
    const wanted = Number(options.resourceVersion || '0');
    // From no version in particular: what there is comes first, as if it had just been made.
    const sendsAll = options.sendInitialEvents || wanted === 0;
    if (!sendsAll && wanted < store.compacted) {
      // As kube-apiserver does: the answer has begun, so the error is a frame.
      this.fail(expired(`too old resource version: ${options.resourceVersion} (${store.compacted})`));
      return;
    }
    const from = sendsAll ? store.revision : wanted;
    this.#endings.push(store.subscribe(resource, (change) => this.#onChange(change, from)));
    const lengthMs = options.timeoutSeconds * 1000;
    this.#endings.push(clock.schedule(lengthMs, () => this.end()));
    if (lengthMs > LAST_BOOKMARK_MS) {
      this.#endings.push(clock.schedule(lengthMs - LAST_BOOKMARK_MS, () => this.bookmark()));
    }
    this.#scheduleBookmark();
    if (sendsAll) {
      await this.#sendAll(from);
    } else {
      for (const change of store.since(resource, from)) this.#onChange(change, from);
    }
  }

  bookmark(): void {
    const { store, options } = this.#watch;
    const isAhead = Number(options.resourceVersion) > store.revision;
    if (options.bookmarks && !isAhead) this.#send('BOOKMARK', this.#empty(store.revision, {}));
  }

  /** As agreed. */
  end(): void {
    this.#release();
    if (!this.#isDumb) this.#watch.response.end();
  }

  fail(error: StatusError): void {
    this.errorFrame(error);
    this.end();
  }

  errorFrame(error: StatusError): void {
    this.write(`${JSON.stringify({ type: 'ERROR', object: statusObject(error.code, error.options) })}\n`);
  }

  /** The connection breaks. */
  cut(): void {
    this.#release();
    this.#watch.response.destroy();
  }

  /** Nothing comes any more, not even an end. */
  hang(): void {
    this.#release();
    this.#isDumb = true;
  }

  write(text: string): void {
    const { response } = this.#watch;
    if (!this.#isDumb && !response.writableEnded) response.write(text);
  }

  #onChange({ revision, before, after }: Change, from: number): void {
    const { selector } = this.#watch;
    if (revision <= from) return;
    const matched = before !== undefined && (selector === undefined || selector(before));
    const matches = after !== undefined && (selector === undefined || selector(after));
    if (matches) this.#send(matched ? 'MODIFIED' : 'ADDED', this.#typed(after.json));
    else if (matched) this.#send('DELETED', this.#typed(atRevision(before, revision)));
  }

  async #sendAll(revision: number): Promise<void> {
    const { store, resource, selector, response, options } = this.#watch;
    for (const entry of store.list(resource)) {
      if (selector !== undefined && !selector(entry)) continue;
      this.#send('ADDED', this.#typed(entry.json));
      if (response.writableNeedDrain) await drained(response);
    }
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    if (options.bookmarks && options.sendInitialEvents) {
      this.#send('BOOKMARK', this.#empty(revision, { annotations }));
    }
  }

  #scheduleBookmark(): void {
    const cancel = this.#watch.clock.schedule(BOOKMARK_MS, () => {
      this.bookmark();
      this.#scheduleBookmark();
    });
    this.#endings.push(cancel);
  }

  #send(type: string, object: string): void {
    this.write(`{"type":"${type}","object":${object}}\n`);
  }

  #typed(json: Entry['json']): string {
    const { kind, apiVersion } = this.resource;
    return `{"kind":"${kind}","apiVersion":"${apiVersion}",${json.toString('utf8').slice(1)}`;
  }

  #empty(revision: number, more: Readonly<Record<string, unknown>>): string {
    const { kind, apiVersion, zero } = this.resource;
    return JSON.stringify({
      kind,
      apiVersion,
      metadata: { resourceVersion: String(revision), ...more },
      ...zero,
    });
  }

  #release(): void {
    for (const ending of this.#endings.splice(0)) ending();
  }
}
