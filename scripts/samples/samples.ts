/** What the program prints, for pages under docs/. No sample depends on the machine or the time. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkCommand } from '../../src/cli/checkCommand.ts';
import { main } from '../../src/cli/main.ts';
import type { Output } from '../../src/cli/output.ts';
import { parseCommandLine } from '../../src/config/commandLine.ts';
import { loadConfig } from '../../src/config/load.ts';
import { FLAGS } from '../../src/config/table.ts';
import { isValid } from '../../src/config/validate.ts';
import { ERRORS, JunctionError } from '../../src/errors.ts';
import { HeldPorts } from '../../src/system/heldPorts.ts';
import { createLog } from '../../src/log/log.ts';
import { FAMILIES } from '../../src/model/ip.ts';
import { logFailure } from '../../src/proxy/activity.ts';
import { ManifestSource } from '../../src/sources/manifests/source.ts';
import { printSourceProblem, type SourceProblem } from '../../src/sources/source.ts';
import { ANSWERS } from './answers.ts';
import { causes, repaired } from './causes.ts';
import { CHANGES } from './changes.ts';
import { COMPATIBILITY } from './compatibility.ts';
import { doctorSample } from './doctor.ts';
import { fakeMachine } from '../../test/modes/prerequisites/fakeMachine.ts';
import { alertTable } from '../monitoring/rules.ts';
import { lateFamily, unlistedResource } from './healthz.ts';

type Sample = (root: string) => Promise<string>;

export const SAMPLES: Readonly<Record<string, Sample>> = {
  'manifests-ignored': (root) => planProblems(root, 'ignored.yaml'),
  'manifests-mistakes': (root) => planProblems(root, 'mistakes.yaml'),
  'manifests-twice': (root) => planProblems(root, 'twice.yaml'),
  'manifests-carried': carriedProblems,
  'error-codes': errorCodes,
  'error-example': errorExample,
  'sync-failed': syncFailed,
  'check-ipvs': checkIpvs,
  'port-taken': portTaken,
  'healthz-late': lateFamily,
  'healthz-resources': unlistedResource,
  causes,
  repaired,
  ...CHANGES,
  ...ANSWERS,
  ...COMPATIBILITY,
  doctor: doctorSample,
  alerts: async () => alertTable(),
};

interface Printed {
  readonly output: Output;
  readonly out: () => string;
  readonly err: () => string;
}

function printed(): Printed {
  let out = '';
  let err = '';
  const write = (text: string): void => void (out += text);
  const output = { out: write, painted: write, err: (text: string): void => void (err += text) };
  return { output, out: () => out, err: () => err };
}

/** Of `junction plan`, without its last line, which is the same for all. */
async function planProblems(root: string, name: string): Promise<string> {
  const { output, err } = printed();
  await main(['plan', '--manifests', join(root, 'docs/samples', name)], output);
  return err()
    .replaceAll(`${join(root, 'docs/samples')}/`, '')
    .replace(/^junction: .*\n/m, '');
}

/** A file that had a Service, and is saved half-way through an edit. */
async function carriedProblems(): Promise<string> {
  const service = 'apiVersion: v1\nkind: Service\nmetadata: { name: api, namespace: shop }\n';
  const good = `${service}spec: { clusterIP: 10.96.0.10, ports: [{ port: 80 }] }\n`;
  const broken = `${service}spec: { clusterIP: 10.96.0.10, ports: [\n    - port: 80\n`;
  const folder = mkdtempSync(join(tmpdir(), 'junction-sample-'));
  const file = join(folder, 'api.yaml');
  const lines: string[] = [];
  const ignore = (): void => {};
  const report = (problem: SourceProblem): void => void lines.push(`${printSourceProblem(problem)}\n`);
  const source = new ManifestSource([folder]);
  try {
    writeFileSync(file, good);
    await source.start({ service: ignore, endpointSlice: ignore, node: ignore, synced: ignore, report });
    writeFileSync(file, broken);
    await source.refresh();
  } finally {
    await source.stop();
    rmSync(folder, { recursive: true });
  }
  return lines.join('').replaceAll(folder, 'live');
}

async function errorCodes(): Promise<string> {
  const rows = Object.entries(ERRORS).map(
    ([code, { meaning, remedy }]) => `| \`${code}\` | ${meaning} | ${remedy} |\n`,
  );
  return `| code | meaning | what to do |\n| --- | --- | --- |\n${rows.join('')}`;
}

async function errorExample(): Promise<string> {
  const { output, err } = printed();
  await main(['plan', '--kubeconfig', 'nowhere.conf'], output);
  return err();
}

/** At a made-up time and place: the bundle of this script has other lines than the program. */
async function syncFailed(): Promise<string> {
  let line = '';
  const log = createLog({ verbosity: 0, format: 'text', write: (text) => void (line += text) });
  const message = 'iptables-restore refused its input: line 7 of table nat failed';
  const err = new JunctionError('IPTABLES_RESTORE_FAILED', message);
  logFailure(log, 'IPv4', err, 30_000);
  return line.replace(/^E[^\]]*/, 'E1115 05:17:09.123000   12345 activity.ts:122');
}

/** A port that another program has, and then gives up. */
async function portTaken(): Promise<string> {
  const lines: string[] = [];
  let isTaken = true;
  const ports = new HeldPorts({
    bind: () => (isTaken ? { kind: 'refused', errno: 'EADDRINUSE' } : { kind: 'bound', close: () => {} }),
    onEvent: (_, message) => lines.push(`${message}\n`),
  });
  const description = 'node port of shop/web:http';
  const port = { family: 'IPv4', ip: '', port: 30080, protocol: 'TCP', description } as const;
  ports.reconcile([port]);
  isTaken = false;
  ports.reconcile([port]);
  return lines.join('');
}

/** Some rows of a machine without ip_vs, and where others are left out. */
async function checkIpvs(): Promise<string> {
  const parsed = parseCommandLine(['--proxy-mode=ipvs'], FLAGS);
  const loaded = parsed.ok ? loadConfig(parsed.value, () => '') : parsed;
  if (!loaded.ok || !isValid(loaded.value.config)) throw new Error('not a configuration');
  const { output, out } = printed();
  const machine = fakeMachine({ modules: ['ip_vs'] });
  await checkCommand(loaded.value.config, output, { families: FAMILIES, output: 'text' }, machine);
  const [header = '', ...lines] = out().split('\n');
  const shown = /^(?:capability NET_ADMIN|kernel module ip_vs |IPVS scheduler|ipset types|$|ipvs mode)/;
  const kept: string[] = [header];
  let isShown = true;
  for (const line of lines) {
    if (!line.startsWith(' ')) isShown = shown.test(line);
    if (isShown) kept.push(line.trimEnd());
    else if (kept.at(-1) !== '…') kept.push('…');
  }
  return kept.join('\n');
}
