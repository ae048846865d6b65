/** `/v1/status?wait=applied`, with work that a test opens and ends. */
import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { apiPage } from '../../../src/daemon/api/routes.ts';
import { statusRoute } from '../../../src/daemon/api/statusRoute.ts';
import { Applied } from '../../../src/daemon/applied.ts';
import type { Status } from '../../../src/explain/status.ts';
import { FULL_STATUS } from '../../support/fullStatus.ts';
import { FakeClock } from '../../time/fakeClock.ts';
import { askPage } from './ask.ts';

class Proxy {
  readonly clock = new FakeClock();
  readonly receiving = new Set<string>();
  readonly writing = new Set<string>();
  refreshed = Promise.resolve();
  version: number | undefined;
  readonly #applied = new Applied({
    refresh: () => this.refreshed,
    receiving: () => [...this.receiving],
    work: () => [
      {
        mark: () => {
          const marked = [...this.writing];
          return () => marked.filter((each) => this.writing.has(each));
        },
      },
    ],
  });
  readonly #page = apiPage(
    [
      statusRoute({
        status: () => FULL_STATUS,
        applied: {
          clock: this.clock,
          wait: (wait) => this.#applied.wait(wait),
          missing: (service, resourceVersion = '0') =>
            this.version !== undefined && this.version >= Number(resourceVersion)
              ? undefined
              : `Service ${service} is not known`,
        },
      }),
    ],
    (error) => {
      throw error;
    },
  );

  async ask(query: string, signal = new AbortController().signal): Promise<[number, Status]> {
    const { status, text } = await askPage(this.#page, `/v1/status?${query}`, { signal });
    return [status, JSON.parse(text) as Status];
  }

  end(what: string): void {
    this.receiving.delete(what);
    this.writing.delete(what);
    this.#applied.changed();
  }
}

const WAIT = 'wait=applied&timeout=5s';

describe('an answer that waits', () => {
  test('comes at once where nothing is open, with what is wrong as warnings', async () => {
    const [status, { wait }] = await new Proxy().ask(WAIT);
    expect(status).toBe(200);
    expect(wait).toEqual({ isApplied: true, milliseconds: 0, open: [], warnings: ['a change waits'] });
  });

  test('comes when what was open has ended, and not for what comes later', async () => {
    const proxy = new Proxy();
    proxy.receiving.add('a list');
    proxy.writing.add('a change');
    const answer = proxy.ask(WAIT);
    await proxy.clock.advance(1000);
    proxy.end('a list');
    await proxy.clock.advance(1000);
    proxy.writing.add('a later change');
    proxy.end('a change');
    const [status, { wait }] = await answer;
    expect([status, wait?.milliseconds]).toEqual([200, 2000]);
  });

  test('waits for what came with what it waited for', async () => {
    const proxy = new Proxy();
    proxy.receiving.add('a list');
    const answer = proxy.ask('wait=applied&timeout=5s&service=shop/web&resourceVersion=7');
    await proxy.clock.advance(0);
    proxy.version = 7;
    proxy.writing.add('what was listed');
    proxy.end('a list');
    await proxy.clock.advance(5000);
    const [status, { wait }] = await answer;
    expect([status, wait?.open]).toEqual([504, ['what was listed']]);
  });

  test('says at its end what is still open, and leaves nothing behind', async () => {
    const proxy = new Proxy();
    const client = new AbortController();
    proxy.writing.add('a change');
    const answer = proxy.ask(`${WAIT}&service=shop/web`, client.signal);
    await proxy.clock.advance(5000);
    const [status, body] = await answer;
    expect(status).toBe(504);
    expect(body).toMatchObject({
      node: 'node1',
      wait: { isApplied: false, milliseconds: 5000, open: ['Service shop/web is not known', 'a change'] },
      error: { code: 'not-applied', message: expect.stringContaining('after 5 s') as string },
    });
    expect([proxy.clock.pending, getEventListeners(client.signal, 'abort').length]).toEqual([0, 0]);
  });

  test('ends with its client', async () => {
    const proxy = new Proxy();
    const client = new AbortController();
    proxy.writing.add('a change');
    const answer = proxy.ask(WAIT, client.signal);
    await proxy.clock.advance(1000);
    client.abort();
    expect((await answer)[0]).toBe(504);
    expect([proxy.clock.pending, getEventListeners(client.signal, 'abort').length]).toEqual([0, 0]);
  });

  test('does not wait longer for a reading that hangs', async () => {
    const proxy = new Proxy();
    proxy.refreshed = new Promise(() => undefined);
    const answer = proxy.ask(WAIT);
    await proxy.clock.advance(5000);
    expect((await answer)[1].wait?.open).toEqual(['what the source has received is still being read']);
  });
});

test.each([
  ['wait=soon', 'wait must be applied'],
  ['timeout=5s', 'timeout goes with wait=applied'],
  ['service=shop/web', 'service goes with wait=applied'],
  ['wait=applied&timeout=5', 'timeout must be a duration'],
  ['wait=applied&timeout=0s', 'more than 0'],
  ['wait=applied&timeout=-1s', 'more than 0'],
  ['wait=applied&timeout=11m', 'at most 10m'],
  ['wait=applied&service=web', 'service must be NAMESPACE/NAME'],
  ['wait=applied&service=shop/web/x', 'service must be NAMESPACE/NAME'],
  ['wait=applied&resourceVersion=7', 'resourceVersion goes with service'],
  ['wait=applied&service=shop/web&resourceVersion=new', 'resourceVersion must be a number'],
])('%s is refused', async (query, reason) => {
  const [status, body] = await new Proxy().ask(query);
  expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining(reason)]);
});

test('a plan and a bundle have nothing to wait for', async () => {
  const page = apiPage([statusRoute({ status: () => FULL_STATUS })], () => undefined);
  expect((await askPage(page, '/v1/status?wait=applied')).status).toBe(404);
  expect((await askPage(page, '/v1/status')).status).toBe(200);
});
