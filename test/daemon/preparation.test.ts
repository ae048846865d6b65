/** What a start says of a configuration that is valid and does not fit. */
import { describe, expect, test } from 'vitest';
import { warnOfInconsistencies } from '../../src/daemon/preparation.ts';
import type { Log } from '../../src/log/log.ts';
import { FAMILIES } from '../../src/model/ip.ts';
import { fromFlags, valid } from '../config/given.ts';

function said(...argv: readonly string[]): readonly string[] {
  const lines: string[] = [];
  const line =
    (severity: string): Log['info'] =>
    (message, fields = {}) =>
      void lines.push([severity, message, ...Object.values(fields)].join(' | '));
  const log: Log = {
    info: line('info'),
    warn: line('warning'),
    error: line('error'),
    verbose: () => {},
    setVerbosity: () => {},
    setModules: () => {},
  };
  warnOfInconsistencies({ config: valid(fromFlags(...argv)), nodeName: 'node1', log }, FAMILIES);
  return lines;
}

describe('node ports', () => {
  test('that answer everywhere', () => {
    expect(said('--proxy-mode=iptables')).toEqual([
      'warning | Kube-proxy configuration may be incomplete or incorrect | nodePortAddresses is unset; NodePort connections will be accepted on all local IPs. Consider using `--nodeport-addresses primary`',
    ]);
  });

  test.each([[['--proxy-mode=nftables']], [['--proxy-mode=iptables', '--nodeport-addresses=primary']]])(
    'that answer at the primary address, before it is known: %j',
    (argv) => {
      expect(said(...argv)).toEqual([]);
    },
  );

  test('that the nftables mode cannot serve on localhost', () => {
    expect(said('--proxy-mode=nftables', '--nodeport-addresses=127.0.0.0/8,192.0.2.0/24')).toEqual([
      'error | --nodeport-addresses includes localhost but localhost NodePorts are not supported | 127.0.0.0/8',
    ]);
  });
});
