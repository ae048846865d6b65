/** The results as docs/reliability.md has them. */
import type { LossEvent, LossMode, LossResult } from './messages.ts';

const EVENTS: Readonly<Record<Exclude<LossEvent, 'switch'>, string>> = {
  restart: 'restart',
  kill: '`kill -9`, then a start',
  kills: '`kill -9` at twenty moments of a start',
  upgrade: 'upgrade from an older version',
  flush: 'flush by another program',
};
const MODES: Readonly<Record<LossMode, string>> = {
  'iptables-nft': 'iptables (nft)',
  'iptables-legacy': 'iptables (legacy)',
  nftables: 'nftables',
  'nftables-backstop': 'nftables, with the backstop',
  ipvs: 'ipvs',
};

const HEADER = [
  'mode',
  'event',
  'proxy',
  'held connections broken',
  'new connections failed',
  'delayed',
  'over',
];

export function printLossReport(where: string, results: readonly LossResult[]): string {
  return `${where}\n\n${line(HEADER)}${line(HEADER.map(() => '---'))}${results.map(printRow).join('')}`;
}

export function printRow(result: LossResult): string {
  const { event, mode, to } = result.scenario;
  const { proxy, held, broken, dialled, failed, delayed, seconds, recovered } = result;
  return line([
    event === 'switch' ? `${MODES[mode]} → ${MODES[to ?? mode]}` : MODES[mode],
    event === 'switch' ? 'mode switch' : EVENTS[event],
    proxy,
    `${broken} of ${held}`,
    `${failed} of ${dialled}`,
    String(delayed),
    `${seconds.toFixed(0)} s${recovered ? '' : ', and not over'}`,
  ]);
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |\n`;
}
