/** Open watches, and what can be done to them. */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../../src/time/clock.ts';
import { drained, encodedStatus } from './answers.ts';
import { head, type ServedEncoding } from './negotiate.ts';
import { encodeFrame, encodeObject, envelope } from './protobuf/encode.ts';
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
  readonly encoding: ServedEncoding;
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
    const { store, clock, response, options, resource, encoding } = this.#watch;
    response.writeHead(200, head(encoding, true));
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
    if (options.bookmarks && !isAhead) this.#sendEmpty(store.revision, {});
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
    const encoded = this.#watch.encoding === 'protobuf' ? encodedStatus(error) : undefined;
    const json = `${JSON.stringify({ type: 'ERROR', object: statusObject(error.code, error.options) })}\n`;
    this.write(encoded === undefined ? json : encodeFrame('ERROR', encoded));
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

  write(frame: string | Uint8Array): void {
    const { response } = this.#watch;
    if (!this.#isDumb && !response.writableEnded) response.write(frame);
  }

  #onChange({ revision, before, after }: Change, from: number): void {
    const { selector } = this.#watch;
    if (revision <= from) return;
    const matched = before !== undefined && (selector === undefined || selector(before));
    const matches = after !== undefined && (selector === undefined || selector(after));
    if (matches) this.#send(matched ? 'MODIFIED' : 'ADDED', after);
    else if (matched) this.#send('DELETED', atRevision(this.resource.kind, before, revision));
  }

  async #sendAll(revision: number): Promise<void> {
    const { store, resource, selector, response, options } = this.#watch;
    for (const entry of store.list(resource)) {
      if (selector !== undefined && !selector(entry)) continue;
      this.#send('ADDED', entry);
      if (response.writableNeedDrain) await drained(response);
    }
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    if (options.bookmarks && options.sendInitialEvents) {
      this.#sendEmpty(revision, { annotations });
    }
  }

  #scheduleBookmark(): void {
    const cancel = this.#watch.clock.schedule(BOOKMARK_MS, () => {
      this.bookmark();
      this.#scheduleBookmark();
    });
    this.#endings.push(cancel);
  }

  #send(type: string, { json, protobuf }: Pick<Entry, 'json' | 'protobuf'>): void {
    const { kind, apiVersion } = this.resource;
    if (this.#watch.encoding === 'json') {
      const object = `{"kind":"${kind}","apiVersion":"${apiVersion}",${json.toString('utf8').slice(1)}`;
      this.write(`{"type":"${type}","object":${object}}\n`);
    } else if (protobuf === undefined) {
      // The next request is answered in JSON.
      this.cut();
    } else {
      this.write(encodeFrame(type, envelope(kind, apiVersion, protobuf)));
    }
  }

  #sendEmpty(revision: number, more: Readonly<Record<string, unknown>>): void {
    const object = { metadata: { resourceVersion: String(revision), ...more }, ...this.resource.zero };
    this.#send('BOOKMARK', {
      json: Buffer.from(JSON.stringify(object)),
      protobuf: this.#watch.encoding === 'json' ? undefined : encodeObject(this.resource.kind, object),
    });
  }

  #release(): void {
    for (const ending of this.#endings.splice(0)) ending();
  }
}
