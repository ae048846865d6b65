import { JunctionError } from '../src/errors.ts';
import { type Argv, type CommandRunner, packageOf } from '../src/system/processes.ts';

/** A runner that puts words before every command: `nsenter --net=/proc/PID/ns/net` for a lab. */
export function prefixed(runner: CommandRunner, prefix: Argv): CommandRunner {
  return async ([program, ...args], options) => {
    const result = await runner([...prefix, program, ...args], options);
    const absent = result.code === 127 && /failed to execute .*: No such file/.test(result.stderr);
    if (!absent) return result;
    throw new JunctionError('PROGRAM_MISSING', `the program ${program} is not installed`, {
      hint: `apt-get install ${packageOf(program)}`,
    });
  };
}
