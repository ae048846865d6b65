import { JunctionError } from '../../../src/errors.ts';
import type { Argv, CommandRunner, RunOptions, RunResult } from '../../../src/system/processes.ts';

export interface FakeRunner {
  readonly runner: CommandRunner;
  /** Every command so far, words joined by spaces. */
  readonly commands: string[];
}

type Answer = Partial<RunResult> | 'missing';

export function fakeRunner(answer: (command: string, options: RunOptions) => Answer | undefined): FakeRunner {
  const commands: string[] = [];
  const runner: CommandRunner = async (argv: Argv, options = {}) => {
    const command = argv.join(' ');
    commands.push(command);
    const result = answer(command, options) ?? {};
    if (result === 'missing')
      throw new JunctionError('PROGRAM_MISSING', `the program ${argv[0]} is not installed`);
    return { code: 0, signal: null, stdout: '', stderr: '', ...result };
  };
  return { runner, commands };
}
