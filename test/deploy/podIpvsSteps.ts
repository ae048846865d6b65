/** What podIpvs.real.test.ts runs in a machine that has IPVS and stands for a node. Prints what happened. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { eventually } from '../e2e/support/eventually.ts';

export interface IpvsPod {
  readonly script: string;
  readonly restartScript: string;
  readonly program: readonly string[];
  readonly settings: readonly string[];
  readonly service: { readonly ip: string; readonly port: number };
  readonly endpoint: { readonly ip: string; readonly port: number };
}

export interface IpvsPodSteps {
  readonly before: Settings;
  readonly first: Run;
  readonly restarted: Run;
}

interface Run {
  readonly log: string;
  readonly capabilities: string;
  readonly settings: Settings;
  readonly answer: string;
  readonly device: string;
}

type Settings = Readonly<Record<string, string>>;

const LIMIT_MS = 200_000;
const GREETING = 'hello from the endpoint';

export async function ipvsPodSteps(pod: IpvsPod): Promise<void> {
  // Kernels from before 2022 have no such alias: asking for IPVS by netlink loads nothing there.
  const modprobe = `#!/bin/sh\ncase "$*" in *family-IPVS*) exit 1;; esac\nexec /run/bin/modprobe "$@"\n`;
  writeFileSync('/run/bin/old-modprobe', modprobe, { mode: 0o755 });
  writeFileSync('/proc/sys/kernel/modprobe', '/run/bin/old-modprobe');
  execFileSync('ip', ['address', 'add', `${pod.endpoint.ip}/32`, 'dev', 'lo']);
  const server = createServer((peer) => void peer.end(GREETING)).listen(pod.endpoint.port, pod.endpoint.ip);
  await once(server, 'listening');

  const before = read(pod.settings);
  const first = await serve(pod, pod.script);
  writeFileSync('/proc/sys/net/ipv4/vs/conntrack', '0');
  const restarted = await serve(pod, pod.restartScript);
  server.close();
  const steps: IpvsPodSteps = { before, first, restarted };
  process.stdout.write(JSON.stringify(steps));
}

async function serve(pod: IpvsPod, script: string): Promise<Run> {
  const { child, log } = start(script, pod.program);
  await eventually(
    () => `serving; it said:\n${log()}`,
    () => {
      if (child.exitCode !== null) throw new Error(`it ended:\n${log()}`);
      return ['IPv4', 'IPv6'].every((family) => log().includes(`"Serving" ipFamily="${family}"`));
    },
    LIMIT_MS,
  );
  const status = readFileSync(`/proc/${String(child.pid)}/status`, 'utf8');
  const run = {
    capabilities: /CapEff:\s+(\w+)/.exec(status)?.[1] ?? '',
    settings: read(pod.settings),
    answer: await ask(pod.service),
    device: execFileSync('ip', ['-oneline', 'address', 'show', 'dev', 'kube-ipvs0'], { encoding: 'utf8' }),
  };
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
  return { ...run, log: log() };
}

function start(
  script: string,
  program: readonly string[],
): { readonly child: ChildProcess; readonly log: () => string } {
  let log = '';
  const child = spawn('unshare', ['--mount', '--', 'sh', '-c', script, 'pod', process.execPath, ...program], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (log += text));
  }
  return { child, log: () => log };
}

function read(names: readonly string[]): Settings {
  const path = (name: string): string => `/proc/sys/${name}`;
  return Object.fromEntries(
    names.map((name) => [
      name,
      existsSync(path(name)) ? readFileSync(path(name), 'utf8').trim() : 'not there',
    ]),
  );
}

async function ask({ ip, port }: IpvsPod['service']): Promise<string> {
  const client = connect({ host: ip, port });
  let answer = '';
  client.setEncoding('utf8').on('data', (text: string) => (answer += text));
  await once(client, 'close');
  return answer;
}
