/** Lets the command line be written as kube-proxy's: `--masquerade_all`, `--masquerade-all=false`, `--v=2`. */
import type { Flag } from './flags.ts';

/** Hyphens for underscores in flag names, and a value for every boolean flag that stands alone. */
export function normaliseArguments(args: readonly string[], flags: readonly Flag[]): readonly string[] {
  const booleans = new Set(flags.filter(({ kind }) => kind === 'bool').map(({ name }) => name));
  return args.map((arg) => {
    const match = /^--([^=]+)(=.*)?$/s.exec(arg);
    if (!match) return arg.replace(/^-(\w)=/, '-$1'); // `-v=2`
    const name = (match[1] ?? '').replaceAll('_', '-');
    const value = match[2] ?? (booleans.has(name) ? '=true' : '');
    return `--${name}${value}`;
  });
}
