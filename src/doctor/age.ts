const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const;

/** `3 d 4 h`, `12 s`, `40 ms`: the two largest units. */
export function printAge(milliseconds: number): string {
  let left = Math.max(0, Math.round(milliseconds));
  if (left < 1000) return `${left} ms`;
  const parts: string[] = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
    if (parts.length === 2 || (parts.length === 1 && count === 0)) break;
  }
  return parts.join(' ');
}
