/** `npm run bench -- hostile`: what one object of the API server's size limit does to the others, in every mode. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { printColumns } from '../../src/cli/table.ts';
import { runInGuest, whyNoGuest } from '../../lab/guest/machine.ts';
import { BadArgument, numberOption, option, progress, refuseUnknown } from '../arguments.ts';
import { openNamespace } from '../namespace.ts';
import { mebibytes, ms } from '../spread.ts';
import { type HostileRun, type HostileTask, MODES, type Phase } from './messages.ts';

const PROGRAM = fileURLToPath(new URL('bench-hostile-run.js', import.meta.url));
const OBJECTS = new URL('bench-hostile-objects.js', import.meta.url);
const GUEST_MINUTES = 15;

export async function hostileCommand(args: readonly string[]): Promise<void> {
  refuseUnknown(
    args,
    ['--modes', '--objects', '--services', '--changes', '--profile'],
    ['--json', '--guest'],
  );
  if (!existsSync(OBJECTS))
    throw new Error('this benchmark needs a whole checkout: its API server is with the tests');
  const { HOSTILE } = (await import(OBJECTS.href)) as typeof import('./objects.ts');
  const names = HOSTILE.map(({ name }) => name);
  const modes = chosen(args, '--modes', MODES);
  const objects = chosen(args, '--objects', names);
  const profile = option(args, '--profile', '');
  // To know how much slower that machine is, by a mode that both have.
  const isInGuest = args.includes('--guest');
  const rows: (readonly string[])[] = [];
  for (const mode of modes)
    for (const hostile of objects) {
      progress(`${mode}: ${hostile}`);
      const task: HostileTask = {
        mode,
        hostile,
        services: numberOption(args, '--services', 300),
        changes: numberOption(args, '--changes', 3),
        ...(profile !== '' && { profile }),
      };
      const run = await (mode === 'ipvs' || isInGuest ? inGuest(task) : inNamespace(task));
      if (args.includes('--json')) process.stdout.write(`${JSON.stringify(run)}\n`);
      for (const warning of run.warnings.slice(0, 4)) progress(warning);
      rows.push([mode, hostile, ...cells(run)]);
    }
  progress('');
  const header = [
    'MODE',
    'OBJECT',
    'CREATE',
    'ITS CHANGE',
    'OTHERS: CREATE',
    'CHANGE',
    'DELETE',
    'RESTART',
    '/LIVEZ: CREATE',
    'CHANGE',
    'DELETE',
    'RESTART',
    'RESIDENT',
  ];
  process.stdout.write(printColumns(header, rows));
}

function cells({ phases, resident }: HostileRun): readonly string[] {
  const of = (name: Phase['name']): Phase | undefined => phases.find((phase) => phase.name === name);
  const names = ['create', 'change', 'delete', 'restart'] as const;
  return [
    most(of('create')?.largeMs),
    most(of('change')?.largeMs),
    ...names.map((name) => most(of(name)?.otherMs)),
    ...names.map((name) => ms(of(name)?.livezMs ?? Number.NaN)),
    mebibytes(resident),
  ];
}

/** The slowest of them. */
function most(values: readonly (number | undefined)[] = []): string {
  return values.includes(undefined) ? 'never' : ms(Math.max(...values.map((value) => value ?? 0)));
}

async function inNamespace(task: HostileTask): Promise<HostileRun> {
  const namespace = await openNamespace();
  try {
    const { code, stdout, stderr } = await namespace.runner([
      process.execPath,
      PROGRAM,
      JSON.stringify(task),
    ]);
    if (code !== 0) throw new Error(`the benchmark's program ended with ${code}\n${stderr}`);
    return JSON.parse(stdout) as HostileRun;
  } finally {
    namespace.close();
  }
}

async function inGuest(task: HostileTask): Promise<HostileRun> {
  const reason = whyNoGuest(['ip', 'iptables-legacy-restore', 'unshare', 'nsenter']);
  if (reason !== undefined) throw new Error(reason);
  const { code, stdout, stderr } = await runInGuest(PROGRAM, {
    timeoutMs: GUEST_MINUTES * 60_000,
    modules: ['ip_vs', 'ip_vs_rr', 'dummy', 'veth'],
    arguments: [JSON.stringify(task)],
  });
  if (code !== 0) throw new Error(`the guest's program ended with ${code}\n${stderr}`);
  return JSON.parse(stdout) as HostileRun;
}

function chosen<Name extends string>(
  args: readonly string[],
  name: string,
  all: readonly Name[],
): readonly Name[] {
  const wanted = option(args, name, all.join(',')).split(',');
  return wanted.map((each) => {
    const found = all.find((other) => other === each);
    if (found === undefined) throw new BadArgument(`${name} ${each}: expected some of ${all.join(',')}`);
    return found;
  });
}
