/**
 * Every change to any table of a node, transaction by transaction, in nearly the words of `nft monitor`. Not by that
 * program: nft 1.0.6 prints memory that it does not own for intervals in concatenations, and ends sometimes.
 */
import type { ChildProcess } from 'node:child_process';
import type { Host } from '../../../lab/host.ts';
import { toolEnvironment } from '../../../lab/tools.ts';
import { bundle } from '../../system/support/bundle.ts';
import { eventually } from './eventually.ts';

const PROGRAM = `
  import { NETLINK_NETFILTER } from './src/netlink/socket.ts';
  import { NetlinkThread } from './src/netlink/thread.ts';
  import { NFNLGRP_NFTABLES } from './src/netlink/nftables/message.ts';
  import { decodeNotification } from './src/netlink/nftables/notifications.ts';
  /** Keys and data, each four bytes of them as an address. */
  const bytes = (value) => value?.match(/.{8}/gs)?.map((word) => Buffer.from(word, 'hex').join('.')).join(' . ');
  const text = (value) => JSON.stringify(value, (_, each) =>
    each instanceof Uint8Array ? bytes(Buffer.from(each).toString('hex')) : typeof each === 'bigint' ? String(each) : each);
  const lines = (notification) => {
    if (notification.kind === 'other') return [];
    if (notification.kind === 'new generation') return ['# new generation (' + notification.generation.id + ')'];
    const [verb, kind] = notification.kind.replace('new', 'add').replace('deleted', 'delete').split(' ');
    const { family, table, chain, set, name, base, elements = [] } = notification[kind];
    const place = [family, ...new Set([table, chain, set, name])].filter((word) => typeof word === 'string').join(' ');
    if (kind === 'elements') return elements.map((element) => verb + ' element ' + place + ' ' + text(element));
    return [[verb, kind, place, base ? 'hook ' + base.hook : ''].join(' ')];
  };
  const thread = await NetlinkThread.start();
  await thread.watch(NETLINK_NETFILTER, [NFNLGRP_NFTABLES], {
    messages: (messages) => process.stdout.write(messages.flatMap((each) => lines(decodeNotification(each))).map((line) => line + '\\n').join('')),
    lost: () => process.exit(9),
  });
  setInterval(() => {}, 1000);
`;

export class NftMonitor {
  readonly #node: Host;
  readonly #child: ChildProcess;
  #text = '';
  #errors = '';
  #marks = 0;

  static async start(node: Host): Promise<NftMonitor> {
    const child = node.spawn([process.execPath, await bundle('nft-monitor', PROGRAM)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: toolEnvironment(),
    });
    const monitor = new NftMonitor(node, child);
    await monitor.#hears();
    return monitor;
  }

  private constructor(node: Host, child: ChildProcess) {
    this.#node = node;
    this.#child = child;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#text += text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#errors += text));
    child.once('exit', (code, signal) => (this.#errors += `ended with ${signal ?? code}`));
  }

  /** What was told since the last time this was asked: the lines of each transaction that touched our tables. */
  async take(): Promise<readonly (readonly string[])[]> {
    await this.#hears();
    const text = this.#text;
    this.#text = '';
    return text
      .split(/^# new generation .*$/m)
      .map((part) => part.split('\n').filter((line) => /\bip6? junction(?![\w-])/.test(line)))
      .filter((lines) => lines.length > 0);
  }

  close(): void {
    this.#child.kill('SIGKILL');
  }

  /** Something of our own is told, and with it everything before it. */
  async #hears(): Promise<void> {
    const before = this.#marks;
    const what = (): string => `a change of ours, from the monitor: ${this.#errors}`;
    await eventually(what, async () => {
      const table = `mark-${++this.#marks}`;
      await this.#node.run(['nft', '-f', '-'], {
        stdin: `add table bridge ${table}\ndelete table bridge ${table}`,
      });
      await new Promise((resolve) => setTimeout(resolve, 20));
      // On a busy machine the monitor is behind by more than one mark.
      const told = [...this.#text.matchAll(/delete table bridge mark-(\d+)/g)];
      return told.some(([, mark]) => Number(mark) > before) && this.#text.trimEnd().endsWith(')');
    });
  }
}
