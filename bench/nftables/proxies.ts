/** Whole proxies beside each other: Junction's daemon, and a kube-proxy where there is one. */
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { printColumns } from '../../src/cli/table.ts';
import { progress } from '../arguments.ts';
import { runInNamespace } from '../namespace.ts';
import { mebibytes, ms, spread } from '../spread.ts';
import type { ProxyRun, ProxyTask, Sizes } from './messages.ts';
import { titleOf } from './report.ts';

const PROGRAM = fileURLToPath(new URL('bench-nftables-proxy.js', import.meta.url));
const API = fileURLToPath(new URL('bench-nftables-api.js', import.meta.url));
const JUNCTION = fileURLToPath(new URL('junction.js', import.meta.url));
const CHANGES = 3;

interface Proxies {
  readonly name: string;
  readonly command: ProxyTask['command'];
}

export interface ProxiesOptions {
  readonly sizes: readonly Sizes[];
  readonly repetitions: number;
  /** A kube-proxy's program. */
  readonly kubeProxy: string | undefined;
}

export async function compareProxies({ sizes, repetitions, kubeProxy }: ProxiesOptions): Promise<string> {
  if (!existsSync(API)) return 'Whole proxies need a whole checkout: their API server is with the tests.\n';
  const proxies: readonly Proxies[] = [
    { name: 'Junction', command: [process.execPath, JUNCTION, 'run'] },
    ...(kubeProxy === undefined ? [] : [{ name: basename(kubeProxy), command: [kubeProxy] as const }]),
  ];
  const rows: (readonly string[])[] = [];
  for (const each of sizes)
    for (const { name, command } of proxies) {
      const runs: ProxyRun[] = [];
      for (let repetition = 1; repetition <= repetitions; repetition++) {
        progress(`${repetition} of ${repetitions}: ${each.services} services, ${name} as a process`);
        runs.push(
          (await runInNamespace(PROGRAM, {
            command,
            sizes: each,
            changes: CHANGES,
          } satisfies ProxyTask)) as ProxyRun,
        );
      }
      rows.push([titleOf(each), name, ...cells(runs)]);
    }
  progress('');
  const header = [
    'SERVICES',
    'PROCESS',
    'START TO FORWARDING',
    'ITS CPU',
    'RESIDENT',
    'ONE CHANGE',
    'ITS CPU',
  ];
  const hint = kubeProxy === undefined ? '(KUBE_PROXY=/path/to/kube-proxy puts it beside.)\n' : '';
  return printColumns(header, rows) + hint;
}

function cells(runs: readonly ProxyRun[]): readonly string[] {
  const all = (print: (value: number) => string, values: (run: ProxyRun) => readonly number[]): string =>
    spread(runs.flatMap(values), print);
  return [
    all(ms, ({ forwardingMs }) => [forwardingMs]),
    all(ms, ({ forwardingCpuMs }) => [forwardingCpuMs]),
    all(mebibytes, ({ resident }) => [resident]),
    all(ms, ({ changeMs }) => changeMs),
    all(ms, ({ changeCpuMs }) => changeCpuMs),
  ];
}
