/** Completion by bash, zsh and fish: words of the command line (bash's are in golden/completion.txt), and names of the running proxy. */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { COMMANDS, commandFlags } from '../../src/cli/commands.ts';
import { completionScript, SHELLS } from '../../src/cli/completionCommand.ts';
import { junction } from './junction.ts';
import { StubApi } from './stubApi.ts';

const run = promisify(execFile);
const stub = new StubApi();
const folder = mkdtempSync(join(tmpdir(), 'junction-completion-'));
const NAMES: Readonly<Record<string, readonly string[]>> = {
  services: ['bank/db', 'shop/api', 'shop/web'],
  namespaces: ['bank', 'shop'],
  nodes: ['node1', 'node2'],
};

beforeAll(async () => {
  stub.respondWith('/v1/names', (request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://localhost');
    const names = NAMES[searchParams.get('kind') ?? ''] ?? [];
    const prefix = searchParams.get('prefix') ?? '';
    response.end(JSON.stringify(names.filter((name) => name.startsWith(prefix))));
  });
  await stub.start();
  symlinkSync(new URL('../../bin/junction', import.meta.url).pathname, join(folder, 'junction'));
  for (const shell of ['bash', 'zsh', 'fish'] as const)
    writeFileSync(join(folder, shell), completionScript(shell));
});
afterAll(async () => {
  await stub.remove();
  rmSync(folder, { recursive: true });
});

async function shell(program: string, ...args: readonly string[]): Promise<readonly string[]> {
  const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}`, HOME: folder };
  const { stdout, stderr } = await run(program, args, { env });
  expect(stderr).toBe('');
  return stdout.split('\n').filter(Boolean);
}

/** What bash offers for the last word. */
function bash(...words: readonly string[]): Promise<readonly string[]> {
  const script = `source ${join(folder, 'bash')}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _junction; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return shell('bash', '-c', script, 'bash', 'junction', ...words);
}

describe('the words', () => {
  const complete = async (...words: readonly string[]): Promise<readonly string[]> => {
    const { code, out, err } = await junction('__complete', ...words);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    return out.split('\n').filter(Boolean);
  };
  const socket = ['--api-socket', stub.socket];

  test.each([
    ['services|', 'bank/db shop/api shop/web'],
    ['services|shop/w', 'shop/web'],
    ['services|w|-n|shop', 'web'],
    ['services||--namespace=bank', 'db'],
    ['services||--namespace|=|bank', 'db'],
    ['destinations|', 'svc/bank/db svc/shop/api svc/shop/web'],
    ['destinations|svc/shop/', 'svc/shop/api svc/shop/web'],
    ['destinations|10.', ''],
    ['sources|', 'node outside pod/'],
    ['nodes|node2', 'node2'],
    ['namespaces|s', 'shop'],
    ['colours|', ''],
  ])('%s: %s', async (words, expected) =>
    expect((await complete(...words.split('|'), ...socket)).join(' ')).toBe(expected),
  );

  test('none where no proxy runs, and none that a shell would obey', async () => {
    expect(await complete('services', '', '--api-socket', '/nowhere')).toEqual([]);
    const hostile = new StubApi();
    hostile.answer('/v1/names', ['a b', '$(reboot)', '`x`', 'x\ny', "it's", 'shop/web']);
    await hostile.start();
    expect(await complete('services', '', '--api-socket', hostile.socket)).toEqual(['shop/web']);
    hostile.answer('/v1/names', { error: { code: 'x', message: 'no' } }, 500);
    expect(await complete('services', '', '--api-socket', hostile.socket)).toEqual([]);
    await hostile.remove();
  });
});

test.each([
  [`explain|--api-socket|${stub.socket}|shop/`, 'shop/api shop/web'],
  [`endpoints|--api-socket|=|${stub.socket}|b`, 'bank/db'],
  [`services|--api-socket|${stub.socket}|-n|`, 'bank shop'],
  [`explain|--api-socket|${stub.socket}|--to|svc/b`, 'svc/bank/db'],
  ['explain|--from|o', 'outside'],
  ['explain|--api-socket|/nowhere|', ''],
])('bash: %s: %s', async (words, expected) => {
  expect((await bash(...words.split('|'))).join(' ')).toBe(expected);
});

/** Says so where the shell is not installed. */
function requireShell(program: string): void {
  const hasShell = spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
  beforeEach((context) => {
    if (!hasShell) context.skip(`${program} is not installed`);
  });
}

describe('zsh', () => {
  requireShell('zsh');
  test('takes the script', async () => {
    expect(await shell('zsh', '-f', '-n', join(folder, 'zsh'))).toEqual([]);
  });

  test('names', async () => {
    const script = `compdef() { :; }; compadd() { print -l -- "\${(@P)2}"; }
source ${join(folder, 'zsh')}
_junction_program=junction; _junction_words=(junction explain --api-socket ${stub.socket}); PREFIX=shop/
_junction_names services`;
    expect(await shell('zsh', '-f', '-c', script)).toEqual(['shop/api', 'shop/web']);
  });
});

describe('fish', () => {
  requireShell('fish');
  const fish = async (line: string): Promise<readonly string[]> => {
    const offered = await shell(
      'fish',
      '--no-config',
      '-c',
      `source ${join(folder, 'fish')}; complete -C ${JSON.stringify(line)}`,
    );
    return offered.map((each) => each.split('\t')[0] ?? '');
  };

  test('names, and values of flags', async () => {
    const socket = `--api-socket ${stub.socket}`;
    expect(await fish(`junction explain ${socket} shop/`)).toEqual(['shop/api', 'shop/web']);
    expect(await fish(`junction services ${socket} -n s`)).toEqual(['shop']);
    expect(await fish('junction explain --output y')).toEqual(['yaml']);
  });
});

test.each(SHELLS)('%s knows every command and flag that people should use', async (shell) => {
  const { code, out } = await junction('completion', shell);
  expect(code).toBe(0);
  for (const command of COMMANDS) {
    expect(out).toContain(command.name);
    for (const { name, deprecated, ignored } of commandFlags(command))
      if (deprecated === undefined && ignored === undefined)
        expect(out).toMatch(new RegExp(`(?:--|-l )${name}\\b`));
  }
});
