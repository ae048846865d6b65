/**
 * A machine with a real systemd as its process 1: Debian's files, and namespaces of its own for processes, mounts, network,
 * host name, IPC and control groups. The kernel is this machine's.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { whyNoLab } from '../../../lab/privileges.ts';
import { attempt } from '../../../src/errors.ts';
import { eventually } from '../../e2e/support/eventually.ts';

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const MOST_OUTPUT = 16 * 1024 * 1024;

export interface Result {
  readonly code: number;
  /** Both streams, in turn. */
  readonly output: string;
}

/** Why no such machine can be had here; `undefined`: it can. A user namespace may neither mount cgroup2 nor own Debian's files. */
export function whyNoSystemd(): string | undefined {
  const isWholeMachine = /^\s*0\s+0\s+4294967295\s*$/.test(readFileSync('/proc/self/uid_map', 'utf8'));
  if (process.geteuid?.() !== 0 || !isWholeMachine)
    return 'To boot systemd in namespaces takes root, not that of a user namespace: sudo npm run test:ship';
  if (process.arch !== 'x64')
    return `The package that is tested is for x64, and this machine is ${process.arch}.`;
  return whyNoLab();
}

export class SystemdNode {
  readonly #work: string;
  readonly #process: ChildProcess;
  #init = 0;

  private constructor(work: string, child: ChildProcess) {
    this.#work = work;
    this.#process = child;
  }

  /** `root` stays as it is: what the machine writes is in memory. */
  static async boot(root: string): Promise<SystemdNode> {
    const work = mkdtempSync(join(tmpdir(), 'junction-systemd-'));
    const die = ['--pdeathsig', 'KILL', '--'];
    const args = [...die, 'unshare', '--mount', '--', 'sh', '-c', OUTER, 'boot', work, root, INNER];
    const child = spawn('setpriv', args, { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    const node = new SystemdNode(work, child);
    try {
      await eventually(
        () => `systemd:\n${said}`,
        async () => {
          if (child.exitCode !== null) throw new Error(`the machine did not start:\n${said}`);
          return node.#isUp();
        },
      );
    } catch (error) {
      await node.close();
      throw error;
    }
    return node;
  }

  async #isUp(): Promise<boolean> {
    const pid = String(this.#process.pid);
    const children = readProc(`${pid}/task/${pid}/children`);
    if (!/^\d+$/.test(children)) return false;
    // The shell before it runs programs of its own, which end between the two reads.
    if (readProc(`${children}/comm`) !== 'systemd') return false;
    this.#init = Number(children);
    return (await this.run('systemctl', 'is-system-running')).output.trim() === 'running';
  }

  /** A file of the machine, as this one sees it. */
  path(name: string): string {
    return `/proc/${String(this.#init)}/root${name}`;
  }

  /** In the machine's network, with this machine's files and programs. */
  network(): readonly string[] {
    return ['nsenter', '--target', String(this.#init), '--net', '--'];
  }

  /** In the machine. */
  run(...argv: readonly string[]): Promise<Result> {
    const enter = [
      '--target',
      String(this.#init),
      '--all',
      '--',
      'env',
      '-i',
      `PATH=${PATH}`,
      'LC_ALL=C.UTF-8',
    ];
    return capture(['nsenter', ...enter, ...argv]);
  }

  /** Lines for its shell, which ends with the first that fails. */
  async shell(lines: string): Promise<string> {
    const { code, output } = await this.run('sh', '-euc', `cd /root; ${lines}`);
    if (code !== 0) throw new Error(`exit code ${String(code)}: ${lines}\n${output}`);
    return output;
  }

  async close(): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const ended = once(this.#process, 'exit');
      this.#process.kill('SIGKILL');
      await ended;
    }
    // systemd's own groups outlive it, and can be removed once its last process has ended.
    await eventually('the end of its processes', async () => {
      return (
        (await capture(['unshare', '--mount', '--', 'sh', '-c', FORGET, 'forget', this.#work])).code === 0
      );
    });
    rmSync(this.#work, { recursive: true, force: true });
  }
}

/** Empty for a process that has ended. */
function readProc(path: string): string {
  return attempt(() => readFileSync(`/proc/${path}`, 'utf8'))?.trim() ?? '';
}

export function capture(argv: readonly string[]): Promise<Result> {
  const [command = '', ...args] = argv;
  return new Promise((resolve) => {
    execFile(command, args, { maxBuffer: MOST_OUTPUT }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
      resolve({ code, output: stdout + stderr });
    });
  });
}

/** A control group of its own, in the one hierarchy of cgroup2: systemd sees nothing above it. */
const OUTER = `
set -eu
mount --make-rprivate /
mkdir "$1/groups" "$1/machine"
mount -t cgroup2 none "$1/groups"
mkdir "$1/groups/\${1##*/}"
echo $$ > "$1/groups/\${1##*/}/cgroup.procs"
exec unshare --cgroup --fork --pid --net --uts --ipc --kill-child -- sh -c "$3" boot "$1/machine" "$2"
`;

/** From an empty memory file system over Debian's files to systemd. */
const INNER = `
set -eu
mount -t tmpfs tmpfs "$1"
cd "$1"
mkdir upper work root
mount -t overlay overlay -o "lowerdir=$2,upperdir=upper,workdir=work" root
cd root
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
for name in null zero full random urandom tty; do
  touch "dev/$name"
  mount --bind "/dev/$name" "dev/$name"
done
mkdir dev/pts dev/shm mnt/before
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs tmpfs dev/shm
hostname node1
echo node1 > etc/hostname
pivot_root . mnt/before
umount -l /mnt/before
exec env -i container=junction-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /sbin/init
`;

const FORGET = `
mount --make-rprivate /
mount -t cgroup2 none "$1/groups"
[ ! -d "$1/groups/\${1##*/}" ] || find "$1/groups/\${1##*/}" -depth -type d -exec rmdir {} +
`;
