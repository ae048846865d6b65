/** What the benchmarks' commands have in common. */
export function option(args: readonly string[], name: string, fallback: string): string {
  const index = args.indexOf(name);
  return index < 0 ? fallback : (args[index + 1] ?? fallback);
}

export function numberOption(args: readonly string[], name: string, fallback: number): number {
  const value = Number(option(args, name, String(fallback)));
  if (Number.isFinite(value) && value >= 0) return value;
  throw new Error(`${name}: not a number`);
}

export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
  else if (text !== '') process.stderr.write(`${text}\n`);
}
