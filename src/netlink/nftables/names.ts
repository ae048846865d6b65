/** The kernel's numbers and the words that stand for them here, which are those of the program nft where it has any. */

export interface Names<Name extends string> {
  readonly number: (name: Name) => number;
  /** `undefined` for a number that has no word here. */
  readonly name: (number: number) => Name | undefined;
}

export function names<Name extends string>(numbers: Readonly<Record<Name, number>>): Names<Name> {
  const byNumber = new Map(Object.entries<number>(numbers).map(([name, number]) => [number, name as Name]));
  return { number: (name) => numbers[name], name: (number) => byNumber.get(number) };
}

/** Words for single bits. They are always answered in the order of the table. */
export interface FlagNames<Name extends string> {
  readonly bits: (flags: readonly Name[]) => number;
  /** `undefined` when there is a bit that has no word here. */
  readonly flags: (bits: number) => readonly Name[] | undefined;
}

export function flagNames<Name extends string>(table: Readonly<Record<Name, number>>): FlagNames<Name> {
  const all = Object.entries<number>(table).map(([name, bit]) => [name as Name, bit] as const);
  const known = all.reduce((bits, [, bit]) => bits | bit, 0);
  return {
    bits: (flags) => flags.reduce((bits, flag) => bits | table[flag], 0),
    flags: (bits) =>
      (bits & ~known) === 0 ? all.filter(([, bit]) => (bits & bit) !== 0).map(([name]) => name) : undefined,
  };
}
