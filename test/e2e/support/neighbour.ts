/** A neighbour of node1 that sends packets to 127.0.0.1, and what listens on the node's loopback address alone. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lab } from '../../../lab/lab.ts';
import { eventually } from './eventually.ts';

const PORT = 7777;
/** It says from where, for every packet that reaches it. */
const LISTENER = `const socket = require('node:dgram').createSocket('udp4');
socket.on('message', (_, { address }) => console.log(address === '127.0.0.1' ? 'asked' : 'reached'));
socket.bind(${PORT}, '127.0.0.1', () => console.log('listening'));`;

export class Neighbour {
  readonly #lab: Lab;
  #heard = '';

  static async start(lab: Lab): Promise<Neighbour> {
    const neighbour = new Neighbour(lab);
    const stdio = ['ignore', 'pipe', 'inherit'] as const;
    const listener = lab.host('node1').spawn([process.execPath, '-e', LISTENER], { stdio: [...stdio] });
    listener.stdout?.on('data', (text: Buffer) => (neighbour.#heard += text.toString()));
    await eventually('a listener', () => neighbour.#heard.includes('listening'));
    const client = lab.host('client');
    // What a hostile neighbour does: 127.0.0.1 is behind the node.
    for (const range of ['127.0.0.0/8', '127.0.0.1/32'])
      await client.run(['ip', 'route', 'del', 'local', range, 'table', 'local']);
    await client.run(['ip', 'route', 'add', '127.0.0.1/32', 'via', '192.0.2.1', 'src', '192.0.2.10']);
    return neighbour;
  }

  private constructor(lab: Lab) {
    this.#lab = lab;
  }

  /** Answers would be lost on the way back, as they may be for an attacker: what counts is what the listener hears. */
  async send(): Promise<void> {
    const options = { timeoutMs: 20, source: '192.0.2.10' };
    await this.#lab.host('client').request('udp', '127.0.0.1', PORT, options);
  }

  #count(word: 'asked' | 'reached'): number {
    return this.#heard.split(word).length - 1;
  }

  /** How many of them got through so far: what the node itself sends arrives after all that came before it. */
  async #reached(): Promise<number> {
    const before = this.#count('asked');
    await this.#lab.host('node1').request('udp', '127.0.0.1', PORT, { timeoutMs: 20 });
    await eventually('the packet of the node itself', () => this.#count('asked') > before);
    return this.#count('reached');
  }

  /** Until one gets through. */
  async getsThrough(): Promise<void> {
    const before = await this.#reached();
    await eventually('a packet, where nobody guards', async () => {
      await this.send();
      return (await this.#reached()) > before;
    });
  }

  /** Returns how many packets were sent while the work was done, and how many got through. */
  async sendDuring(
    work: () => Promise<void>,
    { senders = 2, betweenMs = 0 } = {},
  ): Promise<{ readonly sent: number; readonly reached: number }> {
    const end = new AbortController();
    const before = await this.#reached();
    let sent = 0;
    const sending = Promise.all(
      Array.from({ length: senders }, async () => {
        for (; !end.signal.aborted; sent++) {
          await this.send();
          await sleep(betweenMs);
        }
      }),
    );
    try {
      await work();
    } finally {
      end.abort();
      await sending;
    }
    return { sent, reached: (await this.#reached()) - before };
  }
}
