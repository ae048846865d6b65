/** The results as docs/reliability.md has them. */
import type { LossEvent, LossMode, LossResult } from './messages.ts';

const EVENTS: Readonly<Record<Exclude<LossEvent, 'switch'>, string>> = {
  restart: 'restart',
  kill: '`kill -9`, then a start',
  flush: 'flush by another program',
};
const MODES: Readonly<Record<LossMode, string>> = {
  'iptables-nft': 'iptables (nft)',
  'iptables-legacy': 'iptables (legacy)',
  nftables: 'nftables',
  ipvs: 'ipvs',
};

export function printLossReport(where: string, results: readonly LossResult[]): string {
  const rows = results.map(
    ({ scenario: { event, mode, to }, proxy, held, broken, dialled, failed, delayed, seconds }) => [
      event === 'switch' ? `${MODES[mode]} → ${MODES[to ?? mode]}` : MODES[mode],
      event === 'switch' ? 'mode switch' : EVENTS[event],
      proxy,
      `${broken} of ${held}`,
      `${failed} of ${dialled}`,
      String(delayed),
      `${seconds.toFixed(0)} s`,
    ],
  );
  const header = [
    'mode',
    'event',
    'proxy',
    'held connections broken',
    'new connections failed',
    'delayed',
    'over',
  ];
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
  return `${where}\n\n${line(header)}${line(header.map(() => '---'))}${rows.map(line).join('')}`;
}
