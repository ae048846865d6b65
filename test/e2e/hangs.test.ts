/** What hangs, what runs out and what nobody caught: none of it ends or deafens the program, or outlives it. */
import { execFileSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TOOL_PATH } from '../../lab/tools.ts';
import { groupOf } from '../system/support/processes.ts';
import { useLab } from '../lab/requireLab.ts';
import { FLAGS } from './daemon.ts';
import { eventually } from './support/eventually.ts';
import { fetchFrom, tryFetch } from './support/fetch.ts';
import { PROGRAM, Program, type StartOptions } from './support/program.ts';
import { ourRules } from './support/rules.ts';
import { manifests } from './cluster.ts';

const API = { name: 'api', ip: '10.96.1.1', ip6: 'fd00:96::1', pods: 'ac' };
const LATER = { name: 'later', ip: '10.96.1.2', ip6: 'fd00:96::2', pods: 'ac' };
const METRICS = 'http://127.0.0.1:10249/metrics';

/** Stands before a program of iptables: while there is a file `hang`, it hangs with a child, and neither ends on request. */
const wrapper = (directory: string): string => `#!/bin/sh
if [ -e ${directory}/hang ]; then
  trap '' TERM
  echo $$ >> ${directory}/hung
  sleep 600
  sleep 600
fi
PATH=${TOOL_PATH} exec "\${0##*/}" "$@"
`;

describe('the program', () => {
  const lab = useLab();
  let directory = '';
  let program: Program | undefined;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'junction-hangs-'));
    write(API);
    for (const base of ['iptables', 'ip6tables'])
      for (const name of [base, `${base}-save`, `${base}-restore`]) {
        writeFileSync(join(directory, name), wrapper(directory));
        chmodSync(join(directory, name), 0o755);
      }
  });
  afterEach(async () => {
    await program?.close();
    program = undefined;
    for (const pid of hung()) killGroup(pid);
    await rm(directory, { recursive: true });
  });

  function write(...services: readonly (typeof API)[]): void {
    const next = join(directory, 'cluster.yaml.new');
    writeFileSync(next, manifests(services));
    renameSync(next, join(directory, 'cluster.yaml'));
  }

  const hang = (): void => writeFileSync(join(directory, 'hang'), '');
  const hangNoMore = (): void => rmSync(join(directory, 'hang'));

  function hung(): readonly number[] {
    try {
      return readFileSync(join(directory, 'hung'), 'utf8').trim().split('\n').map(Number);
    } catch {
      return [];
    }
  }

  function start(options: StartOptions = {}, ...flags: readonly string[]): Program {
    const args = ['run', '--manifests', join(directory, 'cluster.yaml'), ...FLAGS];
    const env = { PATH: `${directory}:${TOOL_PATH}` };
    program = Program.start(lab().host('node1'), [...args, ...flags], { env, ...options });
    return program;
  }

  const rules = (): Promise<string> => ourRules(lab().host('node1'));

  async function metric(name: string): Promise<string | undefined> {
    const answer = await tryFetch(lab().host('node1'), METRICS);
    if (typeof answer === 'string') return undefined;
    return answer.body.split('\n').find((line) => line.startsWith(name));
  }

  /** So many service ports are in the kernel. */
  async function serves(count: number): Promise<void> {
    await eventually(
      () => `it serves ${count}; it said:\n${program?.log}`,
      async () =>
        (await metric('junction_service_ports{ip_family="IPv4"}'))?.endsWith(` ${count}`) === true &&
        (count === 1 || (await rules()).includes('shop/later:http')),
    );
  }

  test('with a hung iptables: it is unhealthy, ends when told, says what hung and leaves nothing behind', async () => {
    const running = start({});
    await running.serves();
    hang();
    write(API, LATER);
    await eventually('iptables hangs', () => hung().length > 0);
    const healthz = 'http://127.0.0.1:10256/healthz';
    await eventually(
      'it is unhealthy',
      async () => (await fetchFrom(lab().host('node1'), healthz)).status === 503,
    );
    running.signal('SIGTERM');
    await running.ended();
    expect(running.log).toContain('"Received SIGTERM; stopping"');
    expect(running.log).toMatch(
      /"Stopping takes long; ending the programs that still run" waitingFor="stopping .*" programs="ip6?tables.* \(pid \d+, for \d+ s\)/,
    );
    await eventually('nothing is left behind', () => hung().every((pid) => groupOf(pid).length === 0));
  });

  test('a second signal ends it at once', async () => {
    const running = start({});
    await running.serves();
    hang();
    write(API, LATER);
    await eventually('iptables hangs', () => hung().length > 0);
    running.signal('SIGTERM');
    await running.says('Received SIGTERM; stopping');
    running.signal('SIGINT');
    expect(await running.ended()).toBe(130);
    expect(running.log).toContain('"Received SIGINT again; exiting at once. The rules stay in place"');
    await eventually('nothing is left behind', () => hung().every((pid) => groupOf(pid).length === 0));
  });

  test('killed with iptables hanging: the next run ends what was left', async () => {
    const running = start({});
    await running.serves();
    hang();
    write(API, LATER);
    await eventually('iptables hangs', () => hung().length > 0);
    await running.end('SIGKILL');
    hangNoMore();
    const next = start({});
    await next.serves();
    expect(next.log).toMatch(
      /"Killed a program that an earlier run left behind" pid=\d+ command=".*ip6?tables/,
    );
    await eventually('nothing is left behind', () => hung().every((pid) => groupOf(pid).length === 0));
  });

  test('a netlink call that hangs does not keep it alive', async () => {
    const preload = `data:text/javascript,${encodeURIComponent(HUNG_CALLS)}`;
    const running = start(
      { program: [process.execPath, '--import', preload, PROGRAM] },
      '--proxy-mode=nftables',
    );
    await running.says('The call hangs');
    running.signal('SIGTERM');
    expect(await running.ended()).toBe(1);
    expect(running.log).toMatch(
      /"Stopping hangs; exiting without it. The rules stay in place" waitingFor="preparing the nftables mode"/,
    );
  });

  test('without descriptors, syncs fail and are repeated, and nothing else', async () => {
    const running = start({}, '--iptables-sync-period=5s');
    await running.serves();
    // Enough to read a file, too few for the pipes of a program.
    limitFiles(running.pid, await numberWithFree(running.pid, 4));
    write(API, LATER);
    await running.says(/"Sync failed".*cannot start ip6?tables\S*: EMFILE/);
    limitFiles(running.pid, 1024);
    await serves(2);
    expect(running.isRunning).toBe(true);
    expect(await metric('junction_faults_total{fault="program_not_started"}')).toMatch(/ [1-9]/);
  });

  test.each([
    // 64 KiB are in the pipe already, and whoever has it open for reading reads nothing.
    ['nobody reads', 'exec 3<>"$0"; head -c 65536 /dev/zero >&3; exec "$@" 2>"$0"'],
    ['whose reader went away', '{ sleep 1 <"$0" & }; exec "$@" 2>"$0"'],
    ['on a full disk', 'exec "$@" 2>/dev/full'],
    ['that is closed', 'exec "$@" 2>&-'],
  ])('with a log %s serves on, and ends when told', async (_, script) => {
    const pipe = join(directory, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const running = start({ before: ['sh', '-c', script, pipe] });
    await serves(1);
    write(API, LATER);
    await serves(2);
    running.signal('SIGTERM');
    expect(await running.ended()).toBe(0);
  });

  test.each([
    [
      'an error that nobody caught',
      'setTimeout(() => { throw new Error("an accident"); })',
      'Uncaught exception',
    ],
    [
      'a rejection that nobody handled',
      'void Promise.reject(new Error("an accident"))',
      'Unhandled rejection',
    ],
  ])('%s is logged with its stack', async (_, act, what) => {
    const preload = `data:text/javascript,process.on("SIGUSR2",()=>{${act}})`;
    const running = start({ program: [process.execPath, '--import', preload, PROGRAM] });
    await running.serves();
    running.signal('SIGUSR2');
    expect(await running.ended()).toBe(1);
    expect(running.log).toContain(
      `"${what}; exiting. The rules stay in place" doing="serving" stack="Error: an accident\\n    at `,
    );
  });
});

/** Every worker is ready, and hangs from then on. */
const HUNG_CALLS = `
import { createRequire } from 'node:module';
const koffi = createRequire(process.argv[1])('koffi');
const { load } = koffi;
koffi.load = (name) => {
  const library = load(name);
  const func = (...args) => {
    const call = library.func(...args);
    if (!String(args[0]).includes(' sendto(')) return call;
    const async = () => {
      process.stderr.write('The call hangs\\n');
      setInterval(() => undefined, 60_000);
    };
    return Object.assign((...given) => call(...given), { async });
  };
  return { func };
};
`;

/** The number of a descriptor below which so many more can be opened, once no program runs. */
async function numberWithFree(pid: number, free: number): Promise<number> {
  const folder = `/proc/${pid}/fd`;
  const printed = (): string => readdirSync(folder).join(' ');
  let open = '';
  await eventually('the same descriptors for half a second', async () => {
    open = printed();
    await sleep(500);
    return printed() === open;
  });
  const used = new Set(open.split(' ').map(Number));
  let number = 0;
  for (let left = free; left > 0; number++) if (!used.has(number)) left--;
  return number;
}

function limitFiles(pid: number, count: number): void {
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${count}:4096`]);
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
