/** Bridges whose packets iptables sees with their port, for the match physdev. */
import { existsSync, readdirSync } from 'node:fs';
import { attempt } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { readSysctl } from '../../system/sysctl.ts';

const DEVICES = '/sys/class/net';

export function filteredBridges(family: Family): ReadonlySet<string> {
  const setting = `net/bridge/bridge-nf-call-${family === 'IPv4' ? 'iptables' : 'ip6tables'}`;
  if (attempt(() => readSysctl(setting)) !== '1') return new Set();
  const names = attempt(() => readdirSync(DEVICES)) ?? [];
  return new Set(names.filter((name) => existsSync(`${DEVICES}/${name}/bridge`)));
}
