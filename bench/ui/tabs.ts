/** Many tabs, as the proxy sees them: each holds a stream, and asks again for what it shows when an event comes. */
import { Agent, get } from 'node:http';
import type { Chromium } from '../../test/page/browser/support/chromium.ts';
import { PROBE } from '../nftables/messages.ts';
import type { AskedProxy } from '../questions/askedProxy.ts';
import type { ViewRun } from './messages.ts';

const STREAM = '/v1/watch';
const PATIENCE_MS = 60_000;

const VIEWS: Readonly<Record<string, string>> = {
  Services: '/services',
  Service: '/services/default/probe',
  Packet: `/packet?from=outside&to=${PROBE.address}:${PROBE.port}`,
  Syncs: '/syncs',
  Node: '/node',
};

export interface Asking {
  readonly view: string;
  /** When it is opened. */
  readonly first: readonly string[];
  /** After a change of the service that it shows. */
  readonly again: readonly string[];
}

/** What each view asks for, as a real tab does. */
export async function whatViewsAsk(
  { browser }: Chromium,
  origin: string,
  proxy: AskedProxy,
): Promise<readonly Asking[]> {
  const all: Asking[] = [];
  for (const [view, path] of Object.entries(VIEWS)) {
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const asked: string[] = [];
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (url.pathname.startsWith('/v1/') && url.pathname !== STREAM) asked.push(url.pathname + url.search);
    });
    await page.goto(origin + path);
    await page.waitForLoadState('load');
    await page.waitForSelector('main h1');
    await page.waitForSelector('[aria-busy=true]', { state: 'detached' });
    const first = [...asked];
    await proxy.change();
    const again = asked.slice(first.length);
    await page.close();
    all.push({ view, first: [...new Set(first)], again: [...new Set(again)] });
  }
  return all;
}

export async function timeViews(
  asking: readonly Asking[],
  origin: string,
  repetitions: number,
): Promise<readonly ViewRun[]> {
  const agent = new Agent({ keepAlive: true });
  const runs: ViewRun[] = [];
  for (const { view, first } of asking)
    for (const path of first) {
      const ms: number[] = [];
      let bytes = 0;
      for (let count = 0; count < repetitions; count++) {
        const started = performance.now();
        bytes = await read(origin + path, agent);
        ms.push(performance.now() - started);
      }
      runs.push({ view, path, bytes, ms });
    }
  agent.destroy();
  return runs;
}

export class Tabs {
  /** Questions so far. */
  asked = 0;
  readonly #agents: Agent[] = [];
  readonly #ends: (() => void)[] = [];

  static async open(count: number, asking: readonly Asking[], origin: string): Promise<Tabs> {
    const tabs = new Tabs();
    for (let number = 0; number < count; number++) {
      const view = asking[number % asking.length];
      if (view) await tabs.#open(view, origin);
    }
    return tabs;
  }

  async #open({ first, again }: Asking, origin: string): Promise<void> {
    // As a browser has them for one origin.
    const agent = new Agent({ keepAlive: true, maxSockets: 6 });
    this.#agents.push(agent);
    const ask = async (paths: readonly string[]): Promise<void> => {
      for (const path of paths) {
        await read(origin + path, agent);
        this.asked++;
      }
    };
    await ask(first);
    let isAsking = false;
    const refresh = (): void => {
      if (isAsking) return;
      isAsking = true;
      void ask(again)
        .catch(() => undefined)
        .finally(() => {
          isAsking = false;
        });
    };
    await new Promise<void>((resolve, reject) => {
      const request = get(`${origin}${STREAM}?format=events`, { agent }, (response) => {
        response.on('data', refresh);
        response.on('error', () => undefined);
        resolve();
      });
      request.once('error', reject);
      this.#ends.push(() => request.destroy());
    });
  }

  close(): void {
    for (const end of this.#ends) end();
    for (const agent of this.#agents) agent.destroy();
  }
}

/** Resolves to the answer's length, compressed as it came. */
function read(url: string, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent, headers: { 'accept-encoding': 'gzip, br' } }, (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.once('error', reject);
      response.once('end', () => resolve(bytes));
    });
    request.once('error', reject);
  });
}
