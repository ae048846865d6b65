/** Restores onto a small state, and what becomes of them. `parse.restore*.test.ts` ask the stand-in and real kernels. */
const STATE = `
*filter
:A - [0:0]
:B - [0:0]
-A A -s 1.1.1.1 -j B
-A B -j DROP
COMMIT
`;

export interface RestoreCase {
  readonly name: string;
  readonly state: string;
  readonly restore: string;
  /** The line of the restore that fails, and the reason; undefined when it succeeds. */
  readonly fails?: { readonly line: number; readonly reason: RegExp };
  /** Only one variant minds. */
  readonly minds?: 'nft' | 'legacy';
}

export const RESTORE_CASES: readonly RestoreCase[] = [
  works('a chain line empties the chain', ':A - [0:0]', '-A A -s 2.2.2.2 -j B'),
  works('a chain line makes the chain', ':C - [0:0]', '-A C -j A'),
  works('a second chain line empties it again', ':A - [0:0]', '-A A -j DROP', ':A - [0:0]', '-A A -j RETURN'),
  works('append', '-A A -j DROP'),
  works('insert', '-I A 2 -s 2.2.2.2 -j DROP', '-I A -s 3.3.3.3 -j DROP'),
  works('delete, written differently', '-D A -s 1.1.1.1/32 -j B'),
  works('delete by number', '-D B 1'),
  works('delete the first of two equals', '-A A -j DROP', '-I A 1 -j DROP', '-D A -j DROP'),
  works('a new chain', '-N C', '-A C -j A'),
  works('flush', '-F A'),
  works('a flushed chain that nothing refers to any more', ':B - [0:0]', ':A - [0:0]', '-X B'),
  works('a chain whose last reference is deleted', ':B - [0:0]', '-D A -s 1.1.1.1 -j B', '-X B'),
  works('deleted and made again', ':A - [0:0]', '-X A', '-N A', '-A A -j DROP'),
  works("a built-in chain's line sets the policy and keeps the rules", '-A INPUT -j A', ':INPUT DROP [0:0]'),
  works("a built-in chain's line without a policy", '-A INPUT -j A', ':INPUT - [0:0]'),
  works('counters', '[5:300] -A A -j DROP'),
  works('a loop that nothing leads to', '-A B -j A'),
  works('a goto', '-A A -g B'),
  works('a chain name of 28 characters', ':N234567890123456789012345678 - [0:0]'),
  works('a quoted comment with escapes', String.raw`-A A -m comment --comment "it's \"odd\"" -j DROP`),
  whole('one table twice', '*filter\n:C - [0:0]\nCOMMIT\n*filter\n-A C -j DROP\nCOMMIT\n'),
  whole(
    'nat chains',
    '*nat\n:D - [0:0]\n:M - [0:0]\n-A D -p tcp -j DNAT --to-destination 1.2.3.4:80\n-A M -j MASQUERADE\n-A PREROUTING -j D\n-A OUTPUT -j D\n-A POSTROUTING -j M\nCOMMIT\n',
  ),
  whole('comment lines and empty lines', '# hello\n\n*filter\n# there\n\n-A A -j DROP\nCOMMIT\n'),

  fails('append to a missing chain', 2, /missing|exist/, '-A C -j DROP'),
  fails('append to a chain that comes later', 2, /exist/, '-A C -j DROP', ':C - [0:0]'),
  fails('a jump to a missing chain', 2, /missing chain C/, '-A A -j C'),
  fails('a jump to a chain that comes later', 2, /missing chain C/, '-A A -j C', ':C - [0:0]'),
  fails('a jump to a built-in chain', 2, /missing chain INPUT/, '-A A -j INPUT'),
  fails('delete a chain with rules', 2, /not empty/, '-X A'),
  fails('delete a chain that is referred to', 3, /referred to/, ':B - [0:0]', '-X B'),
  fails('delete a chain before its last reference', 3, /referred to/, ':B - [0:0]', '-X B', ':A - [0:0]'),
  fails('delete a missing chain', 2, /does not exist/, '-X C'),
  fails('delete a built-in chain', 2, /built in/, '-X INPUT'),
  fails('delete a missing rule', 2, /no such rule/, '-D A -s 9.9.9.9 -j B'),
  fails('delete with other matches', 2, /no such rule/, '-D A -m comment --comment x -s 1.1.1.1 -j B'),
  fails('delete a number too many', 2, /no such rule/, '-D A 2'),
  fails('insert too far', 2, /no place 3/, '-I A 3 -j DROP'),
  fails('a new chain that exists', 2, /already exists/, '-N A'),
  fails('flush a missing chain', 2, /does not exist/, '-F C'),
  fails('a chain name of 29 characters', 2, /too long/, ':N2345678901234567890123456789 - [0:0]'),
  fails("a verdict's name", 2, /cannot be/, ':DROP - [0:0]'),
  fails('a port without a protocol', 2, /protocol/, '-A A --dport 80 -j DROP'),
  fails('-m tcp without -p tcp', 2, /without -p tcp/, '-A A -m tcp -j DROP'),
  fails('-i in OUTPUT', 2, /-i in OUTPUT/, '-A OUTPUT -i eth0 -j DROP'),
  fails('MASQUERADE outside nat', 2, /table filter/, '-A A -j MASQUERADE'),
  fails('DNAT outside nat', 2, /table filter/, '-A A -j DNAT --to-destination 1.2.3.4'),
  {
    ...whole('REJECT outside filter', '*nat\n:C - [0:0]\n-A C -j REJECT\nCOMMIT\n'),
    fails: at(3, /table nat/),
  },
  {
    ...whole(
      'DNAT to a port without a protocol',
      '*nat\n:C - [0:0]\n-A C -j DNAT --to-destination 1.2.3.4:8\nCOMMIT\n',
    ),
    fails: at(3, /protocol/),
  },
  {
    ...whole(
      'MASQUERADE before routing',
      '*nat\n:C - [0:0]\n-A C -j MASQUERADE\n-A PREROUTING -j C\nCOMMIT\n',
    ),
    fails: at(5, /reached from PREROUTING/),
  },
  {
    ...whole(
      'DNAT after routing',
      '*nat\n:C - [0:0]\n-A C -j DNAT --to-destination 1.2.3.4\n-A POSTROUTING -j C\nCOMMIT\n',
    ),
    fails: at(5, /reached from POSTROUTING/),
  },
  { ...whole('no COMMIT', '*filter\n:C - [0:0]\n'), fails: at(2, /COMMIT expected/) },
  {
    ...whole(
      'the tables before the failure stay',
      '*filter\n:C - [0:0]\nCOMMIT\n*nat\n-A C -j ACCEPT\nCOMMIT\n',
    ),
    fails: at(5, /does not exist/),
  },
  {
    ...whole(
      'the tables after the failure are not reached',
      '*filter\n-X A\nCOMMIT\n*nat\n:C - [0:0]\nCOMMIT\n',
    ),
    fails: at(2, /not empty/),
  },
  { ...fails('a loop that packets reach', 4, /loop/, '-A INPUT -j A', '-A B -j A'), minds: 'nft' },
  { ...fails('16 jumps deep', 34, /nested/, ...nested(16)), minds: 'nft' },
  works('15 jumps deep', ...nested(15)),
  { ...fails('a policy for a user-defined chain', 2, /policy/, ':C ACCEPT [0:0]'), minds: 'legacy' },
  { ...fails('a chain name like an option', 2, /cannot be/, ':-x - [0:0]'), minds: 'nft' },
];

function nested(depth: number): string[] {
  const names = Array.from({ length: depth }, (_, index) => `N${index}`);
  return [
    ...names.map((name) => `:${name} - [0:0]`),
    ...names.slice(1).map((name, index) => `-A N${index} -j ${name}`),
    '-A INPUT -j N0',
  ];
}

function whole(name: string, restore: string): RestoreCase {
  return { name, state: STATE, restore };
}

function works(name: string, ...lines: readonly string[]): RestoreCase {
  return whole(name, `*filter\n${lines.join('\n')}\nCOMMIT\n`);
}

function fails(name: string, line: number, reason: RegExp, ...lines: readonly string[]): RestoreCase {
  return { ...works(name, ...lines), fails: at(line, reason) };
}

function at(line: number, reason: RegExp): { readonly line: number; readonly reason: RegExp } {
  return { line, reason };
}
