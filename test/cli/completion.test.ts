/** Completion, as bash would ask for it; the scripts of the other shells name the same words. */
import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { COMMANDS, commandFlags } from '../../src/cli/commands.ts';
import { completionScript, SHELLS } from '../../src/cli/completionCommand.ts';
import { junction } from './junction.ts';

/** What is offered for the last word. */
function offered(...words: readonly string[]): readonly string[] {
  const script = `${completionScript('bash')}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _junction; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const out = execFileSync('bash', ['-c', script, 'bash', 'junction', ...words], { encoding: 'utf8' });
  return out.split('\n').filter(Boolean);
}

describe('bash', () => {
  test('commands', () => {
    expect(offered('')).toEqual(COMMANDS.map(({ name }) => name));
    expect(offered('c')).toEqual(['check', 'cleanup', 'completion']);
  });
  test('flags of the command, and no others', () => {
    expect(offered('cleanup', '--d')).toEqual(['--dry-run']);
    expect(offered('cleanup', '--cluster')).toEqual([]);
    expect(offered('run', '--cluster')).toEqual(['--cluster-cidr']);
    expect(offered('--proxy-m')).toEqual(['--proxy-mode']);
  });
  test('values', () => {
    expect(offered('plan', '--output', '')).toEqual(['text', 'table', 'json']);
    expect(offered('run', '--proxy-mode', '=', 'n')).toEqual(['nftables']);
    expect(offered('completion', '')).toEqual([...SHELLS]);
    expect(offered('ui', '/etc/host')).toContain('/etc/hosts');
    expect(offered('plan', '--manifests', '/etc/host').some((path) => path === '/etc/hosts')).toBe(true);
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

test.each([
  [[], /which shell\? junction completion bash\|zsh\|fish/],
  [['tcsh'], /no completion for "tcsh"/],
  [['bash', '--bogus'], /unknown flag: --bogus/],
])('%j', async (args, err) => {
  const run = await junction('completion', ...args);
  expect({ code: run.code, out: run.out }).toEqual({ code: 2, out: '' });
  expect(run.err).toMatch(err);
});
