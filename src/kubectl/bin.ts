import { reportError } from '../cli/reportError.ts';
import { commandOutput } from '../cli/output.ts';
import { runPluginCommand } from './main.ts';

const controller = new AbortController();
for (const [signal, code] of [['SIGINT', 130] as const, ['SIGTERM', 143] as const])
  process.once(signal, () => {
    process.exitCode = code;
    controller.abort(new Error('stopped'));
  });
const output = commandOutput();
output.closed?.addEventListener('abort', () => controller.abort(new Error('nobody reads')));
let code: number;
try {
  code = await runPluginCommand(process.argv.slice(2), output, {
    env: process.env,
    signal: controller.signal,
  });
} catch (error) {
  code = controller.signal.aborted
    ? Number(process.exitCode ?? 0)
    : reportError(error, output, 'kubectl junction');
}
await output.finished?.();
process.exit(code);
