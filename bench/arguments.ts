/** What the benchmarks' commands have in common. */

/** Somebody asks for what there is not. One line says it; the exit code is `BAD_ARGUMENT`. */
export class BadArgument extends Error {}
export const BAD_ARGUMENT = 2;

/** Options that take a value, and flags that take none. A misspelt one would be a long run of something else. */
export function refuseUnknown(
  args: readonly string[],
  options: readonly string[],
  flags: readonly string[] = [],
): void {
  let valueOf: string | undefined;
  for (const each of args) {
    if (valueOf !== undefined && !each.startsWith('--')) valueOf = undefined;
    else if (valueOf !== undefined) throw missing(valueOf);
    else if (options.includes(each)) valueOf = each;
    else if (!flags.includes(each))
      throw new BadArgument(`${each}: no such option; expected ${[...options, ...flags].join(', ')}`);
  }
  if (valueOf !== undefined) throw missing(valueOf);
}

function missing(name: string): BadArgument {
  return new BadArgument(`${name}: expected a value behind it`);
}

export function option(args: readonly string[], name: string, fallback: string): string {
  const index = args.indexOf(name);
  return index < 0 ? fallback : (args[index + 1] ?? fallback);
}

export function numberOption(args: readonly string[], name: string, fallback: number): number {
  const text = option(args, name, String(fallback));
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value >= 0) return value;
  throw new BadArgument(`${name} ${text}: expected a number, 0 or more`);
}

/** Zeros are left out, so that `0` means none at all. */
export function countsOption(args: readonly string[], name: string, fallback: string): readonly number[] {
  const text = option(args, name, fallback);
  if (!/^\d+(,\d+)*$/.test(text))
    throw new BadArgument(
      `${name} ${text}: expected whole numbers with commas between them, like ${fallback}`,
    );
  return text
    .split(',')
    .map(Number)
    .filter((count) => count > 0);
}

/** The first is the default. */
export function choiceOption<Choice extends string>(
  args: readonly string[],
  name: string,
  choices: readonly [Choice, ...Choice[]],
): Choice {
  const text = option(args, name, choices[0]);
  const choice = choices.find((each) => each === text);
  if (choice !== undefined) return choice;
  throw new BadArgument(`${name} ${text}: expected ${choices.join(' or ')}`);
}

export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
  else if (text !== '') process.stderr.write(`${text}\n`);
}
